/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks in one process, each with an engine of its own, joined by a hub (hub_driver.h).
 * Nothing happens between two calls of this file unless the engines have threads.
 */
#ifndef MMC_TESTS_HUB_H
#define MMC_TESTS_HUB_H

#include "engine/engine.h"
#include "engine/state.h"
#include "hub_driver.h"

#define HUB_CHUNK_BYTES 1000
#define HUB_CHANNEL (UINT64_C(7) << 16)
#define HUB_TEAM_CHANNEL (UINT64_C(99) << 32)

/* Returns the number of ranks that have engines; the test plays the others. */
static inline uint32_t hub_nengines(void)
{
	return hub_options.nranks - hub_options.nplayed;
}

/* ---- ranks --------------------------------------------------------------- */

static inline void hub_open_stream(uint32_t r, uint64_t channel,
				   struct mmc_stream **stream)
{
	const struct mmc_stream_options options = {
		.channel = channel,
		.repair = hub_options.repair,
		.eager_bytes = hub_options.eager_bytes,
		.timeout_ns = hub_options.timeout_ns,
	};

	CHECK_EQ(mmc_stream_create(hub[r].team, &options, stream), 0);
}

static inline void hub_open_rank(uint32_t r)
{
	static const uint8_t addresses[HUB_RANKS_MAX] = { 0, 1, 2, 3 };
	struct hub_rank *rank = &hub[r];
	const struct mmc_team_options options = {
		.rank = r,
		.nranks = hub_options.nranks,
		.subgroups = 1,
		.chunk_bytes = HUB_CHUNK_BYTES,
		.checksum = hub_options.checksum,
		.channel = HUB_TEAM_CHANNEL,
		.unattended = hub_options.unattended,
		.timeout_ns = hub_options.timeout_ns,
	};

	rank->number = r;
	rank->endpoint = (struct mmc_endpoint){
		.driver = &hub_driver,
		.address_bytes = 1,
		.read_bytes_max = hub_options.read_bytes_max,
	};
	rank->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&rank->mutex, NULL);
	if (hub_options.threaded)
		CHECK_EQ(mmc_engine_create(&rank->engine), 0);
	else
		CHECK_EQ(mmc_engine_create_stepped(&rank->engine), 0);
	CHECK_EQ(mmc_team_create_on(rank->engine, &rank->endpoint, &options,
				    1 << 20, &rank->team),
		 0);
	CHECK_EQ(mmc_team_connect(rank->team, addresses), 0);
	hub_open_stream(r, HUB_CHANNEL, &rank->stream);
}

/* Opens all ranks but those that the test plays, each with a stream. */
static inline void hub_open(const struct hub_options *options)
{
	memset(hub, 0, sizeof(hub));
	hub_options = *options;
	if (hub_options.timeout_ns == 0)
		hub_options.timeout_ns = 10 * MMC_S_NS;
	hub_begin_ns = mmc_clock_now_ns();
	hub_now_ns = options->clock_ns;
	for (uint32_t r = 0; r < hub_nengines(); r++)
		hub_open_rank(r);
}

/* Closes a rank; its requests must have been freed. */
static inline void hub_close_rank(uint32_t r)
{
	if (hub[r].stream != NULL)
		mmc_stream_close(hub[r].stream);
	mmc_team_close(hub[r].team);
	mmc_engine_destroy(hub[r].engine);
	pthread_mutex_destroy(&hub[r].mutex);
	CHECK(hub[r].closed);
	for (uint32_t i = 0; i < hub[r].nregions; i++)
		CHECK(!hub[r].regions[i].live);
	for (uint32_t i = 0; i < hub[r].ngrants; i++)
		CHECK(!hub[r].grants[i].live);
}

static inline void hub_close(void)
{
	for (uint32_t r = 0; r < hub_nengines(); r++)
		hub_close_rank(r);
	hub_loses = NULL;
}

/* ---- time ---------------------------------------------------------------- */

/*
 * Steps all engines until no datagram is on its way; returns when the next step is due.
 */
static inline uint64_t hub_settle(void)
{
	uint64_t next_ns;
	bool moving;

	do {
		next_ns = MMC_NEVER_NS;
		moving = false;
		for (uint32_t r = 0; r < hub_nengines(); r++)
			next_ns = mmc_min_u64(next_ns,
					      mmc_engine_step(hub[r].engine));
		for (uint32_t r = 0; r < hub_nengines(); r++)
			moving |= hub[r].nhanded < hub[r].nqueued;
	} while (moving);
	return next_ns;
}

/* Lets time pass, from one deadline to the next, up to `until_ns`. */
static inline void hub_pass(uint64_t until_ns)
{
	uint64_t next_ns;

	while ((next_ns = hub_settle()) < until_ns)
		hub_now_ns = mmc_max_u64(next_ns, hub_now_ns + 1);
	hub_now_ns = until_ns;
	hub_settle();
}

/*
 * Lets time pass until a request is complete, but at most `limit_ns`. Returns whether
 * it is complete.
 */
static inline bool hub_complete(struct mmc_request *request, uint64_t limit_ns)
{
	uint64_t until_ns = hub_now_ns + limit_ns;
	uint64_t next_ns;

	while (mmc_request_wait(request, 0) == MMC_EAGAIN &&
	       (next_ns = hub_settle()) < until_ns)
		hub_now_ns = mmc_max_u64(next_ns, hub_now_ns + 1);
	return mmc_request_wait(request, 0) != MMC_EAGAIN;
}

/* ---- operations ---------------------------------------------------------- */

/* Starts an in-place Allgather of `nbytes` per rank; `recv` has room for all blocks. */
static inline struct mmc_request *hub_gather(uint32_t r, uint8_t *recv,
					     uint64_t nbytes)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = nbytes,
		.recv = recv,
	};
	struct mmc_request *request;

	memset(recv + r * nbytes, (int)r + 1, nbytes);
	CHECK_EQ(mmc_start(hub[r].stream, &operation, 0, &request), MMC_EAGAIN);
	return request;
}

/* Checks that `recv` holds the blocks of all ranks as hub_gather() made them. */
static inline void hub_check(const uint8_t *recv, uint64_t nbytes)
{
	for (uint64_t i = 0; i < hub_options.nranks * nbytes; i++)
		if (!CHECK_EQ(recv[i], i / nbytes + 1))
			return;
}

/* Returns the value of a counter of a rank's stream. */
static inline uint64_t hub_count(uint32_t r, enum mmc_counter counter)
{
	return hub[r].stream->counters.value[counter];
}

#endif
