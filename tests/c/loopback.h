/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines with their threads, over UDP on loopback. Each rank is a thread of this
 * process and has its own engine, as each process of a job does.
 */
#ifndef MMC_TESTS_LOOPBACK_H
#define MMC_TESTS_LOOPBACK_H

#include <pthread.h>

#include "check.h"
#include "core/types.h"
#include "drivers/udp/peers.h"
#include "mpimcast/mmc.h"

#define NRANKS 3
#define CHUNK_BYTES 1000
#define SLICE_NS MMC_MS_NS

struct rank {
	uint32_t number;
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_stream *streams[2];
	pthread_t thread;
	unsigned nwrong;
};

static struct rank ranks[NRANKS];
static pthread_barrier_t barrier;
static const char *fault;
static uint32_t repair;
static uint32_t spins;
static uint32_t proxied; /* bit r: rank r has the proxy named `proxied_by` */
static const char *proxied_by = "";
/* The code of the streams, and whether a coder computes it. */
static uint16_t code_data;
static uint16_t code_parity;
static uint16_t coder;

static inline uint8_t byte_of(uint32_t rank, uint64_t index, uint32_t salt)
{
	return (uint8_t)(index * 7 + rank * 31 + salt);
}

static inline void open_rank(struct rank *rank, uint8_t *addresses)
{
	struct mmc_team_options options = {
		.rank = rank->number,
		.nranks = NRANKS,
		.group = 0xefc10100 + ((uint32_t)getpid() & 0xffff),
		.port = 20000 + (uint32_t)getpid() % 20000,
		.subgroups = 1,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
		.channel = UINT64_C(99) << 32,
		.spins = spins,
	};

	snprintf(options.fault, sizeof(options.fault), "%s", fault);
	if (proxied >> rank->number & 1)
		snprintf(options.proxy, sizeof(options.proxy), "%s",
			 proxied_by);
	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	CHECK_EQ(mmc_engine_create(&rank->engine), 0);
	if (!CHECK_EQ(mmc_team_create(rank->engine, &options, &rank->team),
		      0)) {
		fprintf(stderr, "%s\n", mmc_last_error());
		exit(1);
	}
	if (!CHECK_EQ(mmc_team_address_bytes(rank->team),
		      MMC_UDP_ADDRESS_BYTES))
		exit(1);
	mmc_team_address(rank->team,
			 addresses + rank->number * MMC_UDP_ADDRESS_BYTES);
}

static inline void open_all(const char *with_fault)
{
	uint8_t addresses[NRANKS * MMC_UDP_ADDRESS_BYTES];

	fault = with_fault;
	memset(ranks, 0, sizeof(ranks));
	for (uint32_t r = 0; r < NRANKS; r++) {
		ranks[r].number = r;
		open_rank(&ranks[r], addresses);
	}
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(mmc_team_connect(ranks[r].team, addresses), 0);
		for (uint64_t s = 0; s < 2; s++) {
			const struct mmc_stream_options options = {
				.channel = (s + 1) << 16,
				.eager_bytes = 65536,
				.repair = repair,
				.code_data = code_data,
				.code_parity = code_parity,
				.coder = coder,
				.timeout_ns = 10 * MMC_S_NS,
			};

			CHECK_EQ(mmc_stream_create(ranks[r].team, &options,
						   &ranks[r].streams[s]),
				 0);
		}
	}
	pthread_barrier_init(&barrier, NULL, NRANKS);
}

static inline void close_all(void)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		mmc_stream_close(ranks[r].streams[0]);
		mmc_stream_close(ranks[r].streams[1]);
		mmc_team_close(ranks[r].team);
		mmc_engine_destroy(ranks[r].engine);
	}
	pthread_barrier_destroy(&barrier);
}

static inline void on_all(void *(*run)(void *))
{
	for (uint32_t r = 0; r < NRANKS; r++)
		pthread_create(&ranks[r].thread, NULL, run, &ranks[r]);
	for (uint32_t r = 0; r < NRANKS; r++) {
		pthread_join(ranks[r].thread, NULL);
		CHECK_EQ(ranks[r].nwrong, 0);
	}
}

/* Waits for a request as Python does, slice by slice. */
static inline int wait_for(struct mmc_request *request)
{
	int rv;

	while ((rv = mmc_request_wait(request, SLICE_NS)) == MMC_EAGAIN)
		;
	return rv;
}

#endif
