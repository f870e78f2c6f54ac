/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is reported of a result that is still on its way may be read, and is final:
 * engines over UDP on loopback, with losses, repetitions and reordering. While one thread
 * of a rank waits for its blocks, another looks at ranges, and reads those that are
 * present at once. Under ThreadSanitizer, that also proves that whoever learns of data
 * sees it.
 */
#include <sched.h>

#include "loopback.h"
#include "proxies.h"
#include "support/bits.h"
#include "support/prng.h"

enum { SIZES = 6, TURNS = 2 };

#define LOSSY "loss=0.1,dup=0.05,reorder=0.05,seed=7,kind=all"

/* One operation of one rank. */
struct job {
	struct mmc_operation operation;
	uint64_t sizes[NRANKS];
	uint64_t offsets[NRANKS];
	uint32_t rank;
	uint32_t salt;
	uint32_t nblocks;
	uint8_t *recv;
	struct mmc_request *request;
	uint32_t nwrong; /* use atomics */
	bool over;	 /* use atomics */
};

static void blame(struct job *job, bool wrong)
{
	__atomic_fetch_add(&job->nwrong, wrong, __ATOMIC_RELAXED);
}

/* Reads bytes of a block that are said to be present. */
static void read_range(struct job *job, const struct mmc_range *range)
{
	const uint8_t *block = job->recv + job->offsets[range->rank];
	bool wrong = false;

	for (uint64_t i = 0; i < range->nbytes; i++)
		wrong |=
			block[range->first_bytes + i] !=
			byte_of(range->rank, range->first_bytes + i, job->salt);
	blame(job, wrong);
}

/* Looks at random ranges until the operation is over. */
static void *look_at_ranges(void *argument)
{
	struct job *job = argument;
	struct mmc_prng prng = { .state = job->salt * 97 + job->rank };
	uint64_t slice_ns;
	bool over;

	do {
		uint32_t r = (uint32_t)mmc_prng_below(&prng, NRANKS);
		uint64_t first = mmc_prng_below(&prng, job->sizes[r] + 1);
		const struct mmc_range range = {
			.rank = r,
			.first_bytes = first,
			.nbytes = mmc_prng_below(
				&prng,
				mmc_min_u64(job->sizes[r] - first, 5000) + 1),
		};

		/* Now and then this thread waits as well, for something else. */
		slice_ns = mmc_prng_below(&prng, 8) == 0 ? SLICE_NS / 4 : 0;
		over = __atomic_load_n(&job->over, __ATOMIC_ACQUIRE);
		switch (mmc_request_wait_range(job->request, &range,
					       slice_ns)) {
		case 0:
			read_range(job, &range);
			break;
		case MMC_EAGAIN:
			blame(job, over);
			sched_yield();
			break;
		default:
			blame(job, true);
		}
	} while (!over);
	return NULL;
}

/* Takes the blocks as they land, and reads each. */
static void take_blocks(struct job *job)
{
	uint32_t seen = 0, first = 0, rank, again;

	for (uint32_t i = 0; i < job->nblocks; i++) {
		int rv;

		while ((rv = mmc_request_wait_block(job->request, i, SLICE_NS,
						    &rank)) == MMC_EAGAIN)
			;
		blame(job, rv != 0 || rank >= NRANKS || (seen >> rank & 1));
		if (rv != 0 || rank >= NRANKS)
			return;
		seen |= UINT32_C(1) << rank;
		first = i == 0 ? rank : first;
		read_range(job, &(struct mmc_range){
					.rank = rank,
					.nbytes = job->sizes[rank],
				});
		/* What was said stays so. */
		blame(job,
		      mmc_request_wait_block(job->request, 0, 0, &again) != 0 ||
			      again != first);
	}
	blame(job, job->nblocks > 1 && first != job->rank);
	blame(job, mmc_request_wait_block(job->request, job->nblocks, 0,
					  &rank) != -MMC_EINVAL);
}

/* Fills in sizes and memory; this rank's block is in its place. */
static void lay_out(struct job *job, uint64_t nbytes)
{
	uint64_t end = 0;

	for (uint32_t r = 0; r < NRANKS; r++) {
		uint64_t size = nbytes;

		if (job->operation.kind == MMC_BCAST)
			size = r == job->operation.root ? nbytes : 0;
		else if (job->operation.kind == MMC_ALLGATHERV)
			size = (job->salt + r) % NRANKS * nbytes / 2;
		job->sizes[r] = size;
		job->offsets[r] = end;
		end += size;
	}
	job->nblocks = job->operation.kind == MMC_BCAST ? 1 : NRANKS;
	job->recv = malloc(end + 1);
	memset(job->recv, 0xee, end + 1);
	for (uint64_t i = 0; i < job->sizes[job->rank]; i++)
		job->recv[job->offsets[job->rank] + i] =
			byte_of(job->rank, i, job->salt);
	job->operation.recv = job->recv;
	job->operation.block_bytes = nbytes;
	job->operation.blocks_bytes = job->sizes;
	job->operation.partial = 1;
}

static void run(struct rank *rank, enum mmc_kind kind, uint64_t nbytes,
		uint32_t salt)
{
	struct job job = {
		.operation = { .kind = kind, .root = salt % NRANKS },
		.rank = rank->number,
		.salt = salt,
	};
	pthread_t thread;
	int rv;

	lay_out(&job, nbytes);
	rv = mmc_start(rank->streams[0], &job.operation, 0, &job.request);
	/* A rank alone with all that it needs is done at once. */
	if (rv == MMC_EAGAIN) {
		pthread_create(&thread, NULL, look_at_ranges, &job);
		take_blocks(&job);
		rv = wait_for(job.request);
		__atomic_store_n(&job.over, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		take_blocks(&job);
	}
	mmc_request_free(job.request);
	rank->nwrong += job.nwrong + (rv != 0);
	free(job.recv);
}

static void *run_all(void *argument)
{
	static const uint64_t sizes[SIZES] = {
		0, 1, 1001, 4096, 50000, 700000
	};

	for (uint32_t turn = 0; turn < TURNS; turn++)
		for (uint32_t i = 0; i < SIZES; i++) {
			uint32_t salt = turn * SIZES + i;

			run(argument, MMC_ALLGATHER, sizes[i], salt);
			run(argument, MMC_ALLGATHERV, sizes[i], salt + 1);
			run(argument, MMC_BCAST, sizes[i], salt + 2);
		}
	return NULL;
}

static void without_faults(void)
{
	open_all("");
	on_all(run_all);
	close_all();
}

static void with_faults(void)
{
	open_all(LOSSY);
	on_all(run_all);
	close_all();
}

/* ---- notifications ------------------------------------------------------- */

/*
 * Takes blocks whenever the engine says that something has happened; nobody else waits for
 * the request.
 */
static void *take_told_blocks(void *argument)
{
	struct rank *rank = argument;
	struct job job = {
		.operation = { .kind = MMC_ALLGATHER, .notifies = 1 },
		.rank = rank->number,
		.salt = 5,
	};
	uint64_t nended = 0;
	uint32_t ntaken = 0, which = 0;
	int rv;

	lay_out(&job, 400000);
	CHECK_EQ(mmc_start(rank->streams[0], &job.operation, 0, &job.request),
		 MMC_EAGAIN);
	mmc_request_tell_blocks(job.request);
	while (ntaken < NRANKS) {
		CHECK_EQ(mmc_engine_await(rank->engine, &nended), 0);
		while (ntaken < NRANKS &&
		       mmc_request_wait_block(job.request, ntaken, 0, &which) ==
			       0) {
			read_range(&job, &(struct mmc_range){
						 .rank = which,
						 .nbytes = job.sizes[which],
					 });
			ntaken++;
		}
	}
	while ((rv = mmc_request_wait(job.request, 0)) == MMC_EAGAIN)
		mmc_engine_await(rank->engine, &nended);
	mmc_request_free(job.request);
	rank->nwrong += job.nwrong + (rv != 0);
	free(job.recv);
	return NULL;
}

static void blocks_are_told_of(void)
{
	open_all(LOSSY);
	on_all(take_told_blocks);
	close_all();
}

/* ---- proxies ------------------------------------------------------------- */

/* The same where a proxy carries out the operations of all ranks, or of two beside another. */
static void by_proxies(void)
{
	static const uint32_t which[] = { 7, 5 };

	begin_proxy();
	proxied_by = proxy_name;
	for (size_t i = 0; i < sizeof(which) / sizeof(*which); i++) {
		proxied = which[i];
		open_all(LOSSY);
		on_all(run_all);
		close_all();
		open_all(LOSSY);
		on_all(take_told_blocks);
		close_all();
	}
	proxied = 0;
	end_proxy();
}

CHECK_MAIN(CHECK_TEST(without_faults), CHECK_TEST(with_faults),
	   CHECK_TEST(blocks_are_told_of), CHECK_TEST(by_proxies))
