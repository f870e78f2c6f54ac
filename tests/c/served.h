/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server in this process, whose host the test plays: it writes into the bridge what a
 * host would, or must not, write.
 */
#ifndef MMC_TESTS_SERVED_H
#define MMC_TESTS_SERVED_H

#include "check.h"
#include "drivers/udp/peers.h"
#include "engine/engine.h"
#include "offload/ring.h"
#include "server/state.h"
#include "support/time.h"

#define MAILBOX_BYTES 65536
#define REGION_BYTES 65536

static union {
	struct mmc_offload_bridge bridge;
	uint8_t bytes[sizeof(struct mmc_offload_bridge) + MAILBOX_BYTES];
} shared;
static _Alignas(4096) uint8_t region[REGION_BYTES];
static uint32_t nmapped;
static uint32_t nrings;
static struct mmc_engine *engine;
static struct mmc_server *server;

static inline void test_ring(void *context)
{
	(void)context;
	nrings++;
}

static inline int test_map(void *context, uint32_t number, uint64_t nbytes,
			   void **memory)
{
	(void)context;
	(void)number;
	if (nbytes > REGION_BYTES)
		return -MMC_ENOMEM;
	*memory = region;
	nmapped++;
	return 0;
}

static inline void test_unmap(void *context, void *memory)
{
	(void)context;
	(void)memory;
	nmapped--;
}

static inline void begin_server(void)
{
	static const struct mmc_server_host host = {
		.ring = test_ring,
		.map = test_map,
		.unmap = test_unmap,
	};

	memset(&shared, 0, sizeof(shared));
	shared.bridge.magic = MMC_OFFLOAD_MAGIC;
	shared.bridge.version = MMC_OFFLOAD_VERSION;
	nrings = 0;
	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(mmc_server_create(engine, &shared.bridge, sizeof(shared),
				   &host, NULL, &server),
		 0);
}

static inline void end_server(void)
{
	mmc_server_destroy(server);
	mmc_engine_destroy(engine);
	CHECK_EQ(nmapped, 0);
}

static inline void put(const struct mmc_offload_command *command)
{
	struct mmc_offload_ring *ring = &shared.bridge.commands;

	shared.bridge.command[ring->nproduced % MMC_OFFLOAD_COMMANDS] =
		*command;
	mmc_ring_produce(ring);
}

/* Makes a call, with `nbytes` of arguments. Returns the status of its answer. */
static inline int call(uint32_t kind, uint32_t number, const void *arguments,
		       uint32_t nbytes)
{
	struct mmc_offload_mailbox *mailbox = &shared.bridge.mailbox;

	mailbox->stream = number;
	mailbox->request = number;
	mailbox->body_bytes = nbytes;
	if (arguments != NULL)
		memcpy(mailbox->body, arguments, nbytes);
	mailbox->ncalled++;
	put(&(struct mmc_offload_command){ .kind = MMC_OFFLOAD_CALL,
					   .call = kind });
	CHECK(mmc_server_progress(server));
	CHECK_EQ(mailbox->nanswered, mailbox->ncalled);
	return mailbox->status;
}

/* Opens a team with a stream of number 0 and a region of number 0. Rank 0 alone is there. */
static inline void open_all_of(uint32_t nranks)
{
	struct mmc_team_options options = {
		.nranks = nranks,
		.group = 0xefc30100 + ((uint32_t)getpid() & 0xffff),
		.port = 20000 + (uint32_t)getpid() % 12000,
		.subgroups = 1,
		.chunk_bytes = 1000,
		.channel = UINT64_C(99) << 32,
		.timeout_ns = MMC_S_NS,
	};
	const struct mmc_stream_options stream = {
		.channel = UINT64_C(98) << 32,
		.timeout_ns = MMC_S_NS,
	};
	const uint64_t whole[] = { 0, REGION_BYTES };
	uint8_t addresses[2 * MMC_UDP_ADDRESS_BYTES];
	struct mmc_udp_address address;

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	CHECK_EQ(call(MMC_OFFLOAD_OPEN, 0, &options, sizeof(options)), 0);
	CHECK_EQ(mmc_udp_address_decode(&address, shared.bridge.mailbox.body),
		 0);
	/* Nobody is where the other ranks are said to be. */
	for (; address.rank < nranks; address.rank++, address.ip++)
		mmc_udp_address_encode(
			addresses + address.rank * MMC_UDP_ADDRESS_BYTES,
			&address);
	CHECK_EQ(call(MMC_OFFLOAD_CONNECT, 0, addresses,
		      nranks * MMC_UDP_ADDRESS_BYTES),
		 0);
	CHECK_EQ(call(MMC_OFFLOAD_CREATE, 0, &stream, sizeof(stream)), 0);
	CHECK_EQ(call(MMC_OFFLOAD_REGION, 0, whole, sizeof(whole)), 0);
}

static inline void open_all(void)
{
	open_all_of(1);
}

#endif
