/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations go on where epochs and the counters of rings wrap. No test can wait for 2^32
 * operations, so every stream and every bridge begins shortly before that: this program
 * is linked with --wrap for the functions that make them.
 */
#include "offloaded.h"

#include <mpimcast/abi/offload.h>

#include "engine/state.h"

/* So many entries, and operations of a stream, come before each wrap. */
#define NBEFORE 20

/* The wraps are passed, with operations in flight on both sides. */
#define NROUNDS 60
#define NFLIGHT 5

#define NBYTES 2500

static uint8_t results[RANKS_MAX][NFLIGHT][RANKS_MAX * NBYTES];
static struct mmc_offload_bridge *bridges[RANKS_MAX];
static uint32_t nbridges;
static uint32_t nstreams;

/* What the linker puts in the place of mmc_epochs_init(), and what it calls that. */
void __wrap_mmc_epochs_init(struct mmc_epochs *epochs, void *memory,
			    uint64_t channel, uint32_t rank, uint32_t nranks,
			    struct mmc_counters *counters);
void __real_mmc_epochs_init(struct mmc_epochs *epochs, void *memory,
			    uint64_t channel, uint32_t rank, uint32_t nranks,
			    struct mmc_counters *counters);

void __wrap_mmc_epochs_init(struct mmc_epochs *epochs, void *memory,
			    uint64_t channel, uint32_t rank, uint32_t nranks,
			    struct mmc_counters *counters)
{
	__real_mmc_epochs_init(epochs, memory, channel, rank, nranks, counters);
	epochs->last = epochs->done = UINT32_MAX - NBEFORE;
	__atomic_fetch_add(&nstreams, 1, __ATOMIC_RELAXED);
}

/* Likewise of mmc_meeting_map(), by which a proxy maps a bridge. */
void *__wrap_mmc_meeting_map(int fd, uint64_t nbytes);
void *__real_mmc_meeting_map(int fd, uint64_t nbytes);

static void age(struct mmc_offload_ring *ring)
{
	ring->nproduced = ring->nconsumed = UINT32_MAX - NBEFORE;
}

/* The host waits for the answer to its greeting, so nobody uses the bridge yet. */
void *__wrap_mmc_meeting_map(int fd, uint64_t nbytes)
{
	struct mmc_offload_bridge *bridge = __real_mmc_meeting_map(fd, nbytes);

	if (CHECK(bridge != NULL && nbridges < RANKS_MAX)) {
		age(&bridge->commands);
		age(&bridge->completions);
		bridges[nbridges++] = bridge;
	}
	return bridge;
}

static uint8_t value_of(uint32_t rank, uint32_t round, uint32_t n)
{
	return (uint8_t)(rank * 101 + round * 7 + n * 29 + 1);
}

static void begin_all(struct job *job, uint32_t round,
		      struct mmc_request *requests[][NFLIGHT])
{
	for (uint32_t n = 0; n < NFLIGHT; n++)
		for (uint32_t r = 0; r < job->nranks; r++) {
			const struct mmc_operation operation = {
				.kind = MMC_ALLGATHER,
				.block_bytes = NBYTES,
				.recv = results[r][n],
			};

			memset(results[r][n], 0, sizeof(results[r][n]));
			memset(results[r][n] + r * NBYTES,
			       value_of(r, round, n), NBYTES);
			CHECK(mmc_start(job->ranks[r].stream, &operation, 0,
					&requests[r][n]) >= 0);
		}
}

static void check_result(const struct job *job, uint32_t round, uint32_t n,
			 const uint8_t *result)
{
	for (uint32_t i = 0; i < job->nranks * NBYTES; i++)
		if (!CHECK_EQ(result[i], value_of(i / NBYTES, round, n)))
			return;
}

/* Several operations at once, again and again, each of which gives its own bytes. */
static void gather(struct job *job, uint32_t round)
{
	struct mmc_request *requests[RANKS_MAX][NFLIGHT];

	begin_all(job, round, requests);
	for (uint32_t n = 0; n < NFLIGHT; n++)
		for (uint32_t r = 0; r < job->nranks; r++) {
			job->ranks[r].request = requests[r][n];
			CHECK_EQ(finish(&job->ranks[r]), 0);
			check_result(job, round, n, results[r][n]);
		}
}

/* Returns whether a counter that has begun before the wrap is behind it now. */
static bool has_wrapped(const uint32_t *counter)
{
	uint32_t value = __atomic_load_n(counter, __ATOMIC_ACQUIRE);

	return value > 0 && value < UINT32_MAX / 2;
}

static void run_job(uint32_t proxied, const char *fault)
{
	struct job job = { .nranks = 3, .proxied = proxied, .fault = fault };

	nbridges = 0;
	__atomic_store_n(&nstreams, 0, __ATOMIC_RELAXED);
	begin_proxy();
	open_job(&job);
	CHECK_EQ(nbridges, (uint32_t)__builtin_popcount(proxied));
	CHECK(__atomic_load_n(&nstreams, __ATOMIC_RELAXED) >= job.nranks);
	for (uint32_t round = 0; round < NROUNDS; round++)
		gather(&job, round);
	for (uint32_t i = 0; i < nbridges; i++) {
		CHECK(has_wrapped(&bridges[i]->commands.nproduced));
		CHECK(has_wrapped(&bridges[i]->commands.nconsumed));
		CHECK(has_wrapped(&bridges[i]->completions.nproduced));
		CHECK(has_wrapped(&bridges[i]->completions.nconsumed));
	}
	for (uint32_t r = 0; r < job.nranks; r++)
		if (!(proxied >> r & 1))
			CHECK(has_wrapped(&job.ranks[r].stream->epochs.last));
	close_job(&job);
	end_proxy();
}

static void all_have_a_proxy(void)
{
	run_job(7, NULL);
}

static void some_have_a_proxy(void)
{
	run_job(5, NULL);
}

/* What is repaired belongs to epochs on both sides of the wrap. */
static void under_losses(void)
{
	run_job(5, "loss=0.1,dup=0.1,reorder=0.1,seed=11");
}

CHECK_MAIN(CHECK_TEST(all_have_a_proxy), CHECK_TEST(some_have_a_proxy),
	   CHECK_TEST(under_losses))
