/* SPDX-License-Identifier: BSD-3-Clause */
/* Results in memory that the members share: they arrive once, and nobody sees them torn. */
#include "node/request.h"

#include <pthread.h>

#include "node_members.h"

enum { NRANKS = 4, BLOCK_BYTES = 3000, NROUNDS = 300, KEY = 77 };

/* What all members share. */
struct shared {
	uint8_t result[NRANKS * BLOCK_BYTES];
};

struct runner {
	struct shared *shared;
	struct mmc_node_stream *stream;
	uint32_t rank;
	bool in_place;
	uint32_t nwrong;
};

static int finish(struct mmc_node_stream *stream,
		  const struct mmc_operation *operation)
{
	struct mmc_node_request *request;
	int rv = mmc_node_start(stream, operation, MMC_MS_NS, &request);

	while (rv == MMC_EAGAIN)
		rv = mmc_node_request_wait(request, MMC_MS_NS);
	mmc_node_request_free(request);
	return rv;
}

/* Returns whether the shared result is that of a round, from its root if it has one. */
static bool is_of_round(const struct shared *shared, uint32_t round,
			uint32_t root)
{
	static _Thread_local uint8_t expected[BLOCK_BYTES];

	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		fill_block(expected, BLOCK_BYTES, round,
			   root < NRANKS ? root : rank);
		if (memcmp(expected, shared->result + rank * BLOCK_BYTES,
			   BLOCK_BYTES) != 0)
			return false;
		if (root < NRANKS)
			break;
	}
	return true;
}

/*
 * Gathers in every round into the same memory. A member whose block is elsewhere may go
 * on at once: the next operation does not write before all have entered it.
 */
static void *gather(void *argument)
{
	struct runner *runner = argument;
	uint8_t block[BLOCK_BYTES];
	uint8_t *own = runner->shared->result + runner->rank * BLOCK_BYTES;
	struct mmc_operation barrier = { .kind = MMC_NODE_BARRIER };
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = BLOCK_BYTES,
		.send = runner->in_place ? NULL : block,
		.recv = runner->shared->result,
		.shared = KEY,
	};

	for (uint32_t round = 0; round < NROUNDS; round++) {
		fill_block(runner->in_place ? own : block, BLOCK_BYTES, round,
			   runner->rank);
		runner->nwrong += finish(runner->stream, &operation) != 0;
		runner->nwrong += !is_of_round(runner->shared, round, NRANKS);
		if (runner->in_place)
			runner->nwrong += finish(runner->stream, &barrier) != 0;
	}
	return NULL;
}

/* Broadcasts from each rank in turn what its root has put into the shared memory. */
static void *broadcast(void *argument)
{
	struct runner *runner = argument;
	struct mmc_operation barrier = { .kind = MMC_NODE_BARRIER };
	struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.block_bytes = BLOCK_BYTES,
		.recv = runner->shared->result,
		.shared = KEY,
	};

	for (uint32_t round = 0; round < NROUNDS; round++) {
		operation.root = round % NRANKS;
		if (operation.root == runner->rank)
			fill_block(runner->shared->result, BLOCK_BYTES, round,
				   runner->rank);
		runner->nwrong += finish(runner->stream, &operation) != 0;
		runner->nwrong +=
			!is_of_round(runner->shared, round, operation.root);
		runner->nwrong += finish(runner->stream, &barrier) != 0;
	}
	return NULL;
}

/* Runs `run` on all members, and checks that nothing was wrong and nothing copied. */
static void run_all(void *(*run)(void *), bool in_place)
{
	static struct shared shared;
	struct runner runners[NRANKS];
	pthread_t threads[NRANKS];
	struct members members;

	members_open(&members, NRANKS, members_options(NRANKS));
	for (uint32_t i = 0; i < NRANKS; i++) {
		runners[i] = (struct runner){
			.shared = &shared,
			.stream = members.streams[i],
			.rank = i,
			.in_place = in_place,
		};
		pthread_create(&threads[i], NULL, run, &runners[i]);
	}
	for (uint32_t i = 0; i < NRANKS; i++) {
		struct mmc_node_counts counts;

		pthread_join(threads[i], NULL);
		CHECK_EQ(runners[i].nwrong, 0);
		mmc_node_stream_counts(members.streams[i], &counts);
		CHECK_EQ(counts.rx_bytes, 0);
	}
	members_close(&members);
}

static void blocks_arrive_once(void)
{
	run_all(gather, false);
}

static void blocks_in_place_are_seen_by_all(void)
{
	run_all(gather, true);
}

static void a_broadcast_is_seen_by_all(void)
{
	run_all(broadcast, true);
}

static void a_rank_without_the_memory_is_refused(void)
{
	static uint8_t result[2 * BLOCK_BYTES];
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = BLOCK_BYTES,
		.recv = result,
		.shared = KEY,
	};
	struct mmc_node_request *requests[2];
	struct members members;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0,
				&requests[0]),
		 MMC_EAGAIN);
	operation.shared = 0;
	CHECK_EQ(mmc_node_start(members.streams[1], &operation, 0,
				&requests[1]),
		 -MMC_EMISMATCH);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EMISMATCH);
	for (int i = 0; i < 2; i++)
		mmc_node_request_free(requests[i]);
	members_close(&members);
}

/*
 * A root does not wait for others. If one of them then turns out to have started another
 * operation, the root's next one says that it is not to blame.
 */
static void a_later_operation_is_not_to_blame(void)
{
	static uint8_t result[2 * BLOCK_BYTES];
	struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.block_bytes = BLOCK_BYTES,
		.recv = result,
		.shared = KEY,
	};
	struct mmc_node_request *requests[2];
	struct mmc_failure failure;
	struct members members;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0,
				&requests[0]),
		 0);
	CHECK_EQ(mmc_node_allgather(members.streams[0], result, result, 1, 0,
				    &requests[0]),
		 MMC_EAGAIN);
	operation.shared = KEY + 1;
	CHECK_EQ(mmc_node_start(members.streams[1], &operation, 0,
				&requests[1]),
		 -MMC_EMISMATCH);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EPOISONED);
	mmc_node_stream_failure(members.streams[0], &failure);
	CHECK_EQ(failure.error, -MMC_EMISMATCH);
	CHECK_EQ(failure.epoch, 1);
	for (int i = 0; i < 2; i++)
		mmc_node_request_free(requests[i]);
	members_close(&members);
}

/* The short calls, on two members in turn, deliver in the memory that they name. */
static void short_calls_name_the_memory(void)
{
	static const uint8_t blocks[2] = { 5, 6 };
	static uint8_t result[2];
	struct mmc_node_request *requests[2];
	struct mmc_node_counts counts;
	struct members members;

	members_open(&members, 2, members_options(2));
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(mmc_node_allgather(members.streams[i], &blocks[i],
					    result, 1, KEY, &requests[i]),
			 MMC_EAGAIN);
	/* One enters, the other enters and fills, then both can end. */
	for (uint32_t i = 0; i < 4; i++)
		mmc_node_request_wait(requests[i % 2], 0);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(mmc_node_request_wait(requests[i], 0), 0);
		mmc_node_request_free(requests[i]);
		CHECK_EQ(result[i], blocks[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(mmc_node_bcast(members.streams[i], result, 2, 0, KEY,
					&requests[i]),
			 0);
	mmc_node_stream_counts(members.streams[1], &counts);
	CHECK_EQ(counts.operations, 2);
	CHECK_EQ(counts.rx_bytes, 0);
	members_close(&members);
}

CHECK_MAIN(CHECK_TEST(blocks_arrive_once),
	   CHECK_TEST(blocks_in_place_are_seen_by_all),
	   CHECK_TEST(a_broadcast_is_seen_by_all),
	   CHECK_TEST(a_later_operation_is_not_to_blame),
	   CHECK_TEST(short_calls_name_the_memory),
	   CHECK_TEST(a_rank_without_the_memory_is_refused))
