/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is what a host writes into a bridge: commands, calls, and any words in
 * between. The server of an engine on a network without peers must survive it, must not
 * touch memory that is not the host's, and must leave nothing behind.
 */
#include "core/types.h"
#include "engine/engine.h"
#include "fuzz.h"
#include "offload/ring.h"
#include "server/state.h"
#include "support/bits.h"
#include "support/time.h"

#define MAILBOX_BYTES 4096
#define REGION_BYTES 8192
#define NRANKS 2

/* What the rest of the input holds. */
struct reader {
	const uint8_t *bytes;
	size_t nleft;
};

static union {
	struct mmc_offload_bridge bridge;
	uint8_t bytes[sizeof(struct mmc_offload_bridge) + MAILBOX_BYTES];
} shared;
static uint32_t nmapped;
static uint64_t now_ns;

static uint32_t take(struct reader *reader, uint32_t nbytes)
{
	uint32_t value = 0;

	for (; nbytes > 0 && reader->nleft > 0; nbytes--, reader->nleft--)
		value = value << 8 | *reader->bytes++;
	return value;
}

/* ---- a network on which nobody answers ----------------------------------- */

static uint64_t mute_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return now_ns;
}

static void mute_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	memset(address, 0, endpoint->address_bytes);
}

static int mute_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	(void)endpoint;
	(void)addresses;
	return 0;
}

static int mute_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		     unsigned nmax)
{
	(void)endpoint;
	(void)events;
	(void)nmax;
	return 0;
}

static int mute_send(struct mmc_endpoint *endpoint,
		     const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	(void)parcels;
	(void)nparcels;
	return 0;
}

static unsigned mute_fds(struct mmc_endpoint *endpoint, int *fds,
			 unsigned *ncontrol)
{
	(void)endpoint;
	(void)fds;
	*ncontrol = 0;
	return 0;
}

static void mute_close(struct mmc_endpoint *endpoint)
{
	free(endpoint);
}

static const struct mmc_driver mute = {
	.name = "mute",
	.now_ns = mute_now_ns,
	.address = mute_address,
	.connect = mute_connect,
	.poll = mute_poll,
	.send = mute_send,
	.fds = mute_fds,
	.close = mute_close,
};

/* ---- the host ------------------------------------------------------------ */

static void ring(void *context)
{
	(void)context;
}

static int map(void *context, uint32_t number, uint64_t nbytes, void **memory)
{
	(void)context;
	(void)number;
	if (nbytes > REGION_BYTES)
		return -MMC_ENOMEM;
	/* No more than is asked for, so that the sanitizer sees who goes beyond. */
	*memory = malloc(nbytes + (nbytes == 0));
	nmapped++;
	return 0;
}

static void unmap(void *context, void *memory)
{
	(void)context;
	free(memory);
	nmapped--;
}

static void open_team(struct mmc_server *server, struct mmc_engine *engine)
{
	const struct mmc_team_options options = {
		.nranks = NRANKS,
		.subgroups = 1,
		.chunk_bytes = 100,
		.channel = UINT64_C(9) << 32,
		.timeout_ns = MMC_S_NS,
	};
	struct mmc_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	endpoint->driver = &mute;
	endpoint->address_bytes = 8;
	server->nranks = NRANKS;
	server->tables = calloc(2 * NRANKS, sizeof(*server->tables));
	MMC_ASSERT(mmc_team_create_on(engine, endpoint, &options, 10000,
				      &server->team) == 0);
	MMC_ASSERT(mmc_team_connect(server->team, shared.bytes) == 0);
}

/* Puts a command in the ring whose fields are small, so that some are good. */
static void put(struct reader *reader)
{
	struct mmc_offload_ring *commands = &shared.bridge.commands;

	shared.bridge.command[commands->nproduced % MMC_OFFLOAD_COMMANDS] =
		(struct mmc_offload_command){
			.kind = take(reader, 1) % 4,
			.stream = take(reader, 1) % 4,
			.request = take(reader, 1),
			.operation = take(reader, 1) % 5,
			.root = take(reader, 1) % 4,
			.block_bytes = take(reader, 2),
			.recv.region = take(reader, 1) % 4,
			.recv.offset_bytes = take(reader, 2),
			.tables.region = take(reader, 1) % 4,
			.tables.offset_bytes = take(reader, 1),
			.partial = take(reader, 1) % 2,
			.nchunks = take(reader, 2),
			.bits.region = take(reader, 1) % 4,
			.bits.offset_bytes = take(reader, 2),
		};
	mmc_ring_produce(commands);
}

/* Makes a call, but none that opens sockets or waits for a time. */
static void call(struct reader *reader)
{
	struct mmc_offload_mailbox *mailbox = &shared.bridge.mailbox;
	struct mmc_offload_ring *commands = &shared.bridge.commands;
	uint32_t kind = take(reader, 1) % (MMC_OFFLOAD_UNREGION + 2);
	uint32_t nbytes = take(reader, 2);

	if (kind == MMC_OFFLOAD_OPEN || kind == MMC_OFFLOAD_PROBE ||
	    kind == MMC_OFFLOAD_BURST || kind == MMC_OFFLOAD_LISTEN)
		return;
	mailbox->stream = take(reader, 1) % 4;
	mailbox->request = take(reader, 1);
	mailbox->body_bytes = nbytes;
	for (uint32_t i = 0; i < mmc_min_u32(nbytes, MAILBOX_BYTES); i++)
		mailbox->body[i] = (uint8_t)take(reader, 1);
	mailbox->ncalled++;
	shared.bridge.command[commands->nproduced % MMC_OFFLOAD_COMMANDS] =
		(struct mmc_offload_command){
			.kind = MMC_OFFLOAD_CALL,
			.call = kind,
		};
	mmc_ring_produce(commands);
}

static void act(struct mmc_server *server, struct mmc_engine *engine,
		struct reader *reader)
{
	switch (take(reader, 1) % 4) {
	case 0:
		put(reader);
		break;
	case 1:
		call(reader);
		break;
	case 2:
		/* The tables of an Allgatherv, and any other memory that is shared. */
		if (server->mapped[0].bytes != NULL &&
		    server->mapped[0].nbytes > 0)
			server->mapped[0].bytes[take(reader, 2) %
						server->mapped[0].nbytes] =
				(uint8_t)take(reader, 1);
		break;
	default:
		shared.bytes[take(reader, 3) % sizeof(shared.bytes)] =
			(uint8_t)take(reader, 1);
	}
	now_ns += MMC_MS_NS;
	mmc_server_progress(server);
	mmc_engine_step(engine);
	mmc_server_arm(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mmc_server_host host = {
		.ring = ring,
		.map = map,
		.unmap = unmap,
	};
	struct reader reader = { .bytes = data, .nleft = size };
	struct mmc_engine *engine;
	struct mmc_server *server;

	memset(&shared, 0, sizeof(shared));
	shared.bridge.magic = MMC_OFFLOAD_MAGIC;
	shared.bridge.version = MMC_OFFLOAD_VERSION;
	MMC_ASSERT(mmc_engine_create_stepped(&engine) == 0);
	MMC_ASSERT(mmc_server_create(engine, &shared.bridge, sizeof(shared),
				     &host, NULL, &server) == 0);
	open_team(server, engine);
	while (reader.nleft > 0)
		act(server, engine, &reader);
	mmc_server_destroy(server);
	mmc_engine_destroy(engine);
	MMC_ASSERT(nmapped == 0);
	return 0;
}
