/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that start different operations are told, and in what they differ. */
#include "node/agree.h"

#include <pthread.h>

#include "node_members.h"

enum { RECV_BYTES = 64 << 10 };

static struct members members;
static uint8_t recv[MEMBERS_MAX][RECV_BYTES];
static const uint64_t sizes_a[2] = { 8, 16 };
static const uint64_t sizes_b[2] = { 16, 8 };

static const struct mmc_operation gather8 = {
	.kind = MMC_ALLGATHER,
	.block_bytes = 8,
};
static const struct mmc_operation gather9 = {
	.kind = MMC_ALLGATHER,
	.block_bytes = 9,
};
static const struct mmc_operation gatherv_a = {
	.kind = MMC_ALLGATHERV,
	.blocks_bytes = sizes_a,
};
static const struct mmc_operation gatherv_b = {
	.kind = MMC_ALLGATHERV,
	.blocks_bytes = sizes_b,
};
static const struct mmc_operation bcast0 = {
	.kind = MMC_BCAST,
	.root = 0,
	.block_bytes = 8,
};
static const struct mmc_operation bcast1 = {
	.kind = MMC_BCAST,
	.root = 1,
	.block_bytes = 8,
};

/* Starts an operation, and returns what that returns; its request is in `*request`. */
static int start(uint32_t rank, struct mmc_operation operation,
		 struct mmc_node_request **request)
{
	operation.recv = recv[rank];
	return mmc_node_start(members.streams[rank], &operation, 0, request);
}

/*
 * Lets rank 0 and rank 1 of two start different operations, in this order. Rank 1 fails
 * at once, since it reads what rank 0 has filled; rank 0 learns of it. Returns the
 * failure, which is the same on both.
 */
static struct mmc_failure differ(const struct mmc_operation *first,
				 const struct mmc_operation *second)
{
	struct mmc_node_request *requests[2];
	struct mmc_failure failures[2];

	members_open(&members, 2, members_options(2));
	CHECK_EQ(start(0, *first, &requests[0]), MMC_EAGAIN);
	CHECK_EQ(start(1, *second, &requests[1]), -MMC_EMISMATCH);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EMISMATCH);
	for (uint32_t i = 0; i < 2; i++) {
		mmc_node_request_failure(requests[i], &failures[i]);
		CHECK_EQ(failures[i].error, -MMC_EMISMATCH);
		CHECK_EQ(failures[i].culprit, 0);
		CHECK_EQ(failures[i].epoch, 1);
		mmc_node_request_free(requests[i]);
	}
	CHECK_EQ(failures[0].kind_min, failures[1].kind_min);
	CHECK_EQ(failures[0].root_max, failures[1].root_max);
	members_close(&members);
	return failures[1];
}

static void kinds_differ(void)
{
	struct mmc_failure failure = differ(&gather8, &bcast0);

	CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
	CHECK_EQ(failure.kind_max, MMC_BCAST);
	failure = differ(&gatherv_a, &gather8);
	CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
	CHECK_EQ(failure.kind_max, MMC_ALLGATHERV);
}

static void sizes_differ(void)
{
	struct mmc_failure failure = differ(&gather9, &gather8);

	CHECK_EQ(failure.kind_min, failure.kind_max);
	CHECK_EQ(failure.block_bytes_min, 8);
	CHECK_EQ(failure.block_bytes_max, 9);
}

/* Rank 1 awaits rank 0, which is not the root of its own Bcast. */
static void roots_differ(void)
{
	struct mmc_failure failure = differ(&bcast1, &bcast0);

	CHECK_EQ(failure.kind_min, MMC_BCAST);
	CHECK_EQ(failure.kind_max, MMC_BCAST);
	CHECK_EQ(failure.root_min, 0);
	CHECK_EQ(failure.root_max, 1);
}

/* The sizes of an Allgatherv are compared one by one: their sum is equal here. */
static void counts_differ(void)
{
	struct mmc_failure failure = differ(&gatherv_a, &gatherv_b);

	CHECK_EQ(failure.kind_min, MMC_ALLGATHERV);
	CHECK_EQ(failure.kind_max, MMC_ALLGATHERV);
}

/* Operations of different lengths differ in their first piece already. */
static void lengths_differ(void)
{
	struct mmc_operation huge = gather8;
	struct mmc_failure failure;

	huge.block_bytes = 20000;
	failure = differ(&huge, &gather8);
	CHECK_EQ(failure.block_bytes_min, 8);
	CHECK_EQ(failure.block_bytes_max, 20000);
	failure = differ(&gather8, &huge);
	CHECK_EQ(failure.block_bytes_max, 20000);
}

/* The failure speaks of the operations that differ, not of later ones. */
static void later_operations_are_not_blamed(void)
{
	struct mmc_node_request *requests[3];
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(start(0, gather8, &requests[0]), MMC_EAGAIN);
	CHECK_EQ(start(0, bcast1, &requests[1]), MMC_EAGAIN);
	CHECK_EQ(start(1, gather9, &requests[2]), -MMC_EMISMATCH);
	mmc_node_request_failure(requests[2], &failure);
	CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
	CHECK_EQ(failure.kind_max, MMC_ALLGATHER);
	CHECK_EQ(failure.block_bytes_min, 8);
	CHECK_EQ(failure.block_bytes_max, 9);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), -MMC_EPOISONED);
	for (uint32_t i = 0; i < 3; i++)
		mmc_node_request_free(requests[i]);
	members_close(&members);
}

/* The second of two operations differs: the first ends well. */
static void the_first_that_differs_is_named(void)
{
	struct mmc_node_request *requests[2];
	struct mmc_node_request *none;
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(start(0, gather8, &requests[0]), MMC_EAGAIN);
	CHECK_EQ(start(0, gather9, &requests[1]), MMC_EAGAIN);
	CHECK_EQ(start(1, gather8, &none), 0);
	CHECK_EQ(start(1, gather8, &none), -MMC_EMISMATCH);
	mmc_node_request_failure(none, &failure);
	CHECK_EQ(failure.epoch, 2);
	mmc_node_request_free(none);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), 0);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), -MMC_EMISMATCH);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[1]);
	members_close(&members);
}

/* Another process may write anything: what no enum has is not passed on. */
static void hostile_words_are_not_believed(void)
{
	static const uint32_t kinds[] = { 0, 5, 77, UINT32_MAX };

	for (uint32_t i = 0; i < 4; i++) {
		struct mmc_node_request *requests[2];
		struct mmc_failure failure;

		members_open(&members, 2, members_options(2));
		CHECK_EQ(start(0, gather8, &requests[0]), MMC_EAGAIN);
		members.streams[0]->lines[0].words[0].kind = kinds[i];
		members.streams[0]->lines[0].digests[0]++;
		CHECK_EQ(start(1, gather9, &requests[1]), -MMC_EMISMATCH);
		mmc_node_request_failure(requests[1], &failure);
		CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
		CHECK_EQ(failure.kind_max, MMC_ALLGATHER);
		CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EMISMATCH);
		mmc_node_request_free(requests[0]);
		mmc_node_request_free(requests[1]);
		members_close(&members);
	}
}

/* Says whether members have filled a piece, and of what operation. */
static void only_filled_pieces_are_compared(void)
{
	struct mmc_node_request *request;
	struct mmc_node_stream *stream;

	members_open(&members, 3, members_options(3));
	stream = members.streams[0];
	CHECK_EQ(start(0, gather8, &request), MMC_EAGAIN);
	CHECK(mmc_node_has_filled(request, 0, 0));
	CHECK(!mmc_node_has_filled(request, 0, 1));
	CHECK(!mmc_node_has_filled(request, 1, 0));
	/* A digest that stands there before the piece is filled says nothing. */
	stream->lines[1].digests[0] = request->digest + 1;
	CHECK(!mmc_node_has_filled(request, 1, 0));
	CHECK_EQ(stream->failure.error, 0);
	stream->lines[1].digests[0] = request->digest;
	mmc_cursor_set(&stream->lines[1].filled, 1);
	CHECK(mmc_node_has_filled(request, 1, 0));
	stream->lines[2].digests[0] = request->digest + 1;
	mmc_cursor_set(&stream->lines[2].filled, 1);
	CHECK(!mmc_node_has_filled(request, 2, 0));
	CHECK_EQ(stream->failure.error, -MMC_EMISMATCH);
	CHECK_EQ(stream->failure.culprit, 2);
	mmc_node_request_free(request);
	members_close(&members);
}

/* ---- in threads ---------------------------------------------------------- */

struct runner {
	uint32_t rank;
	int rv;
	struct mmc_failure failure;
};

/* Rank 2 gathers blocks of 9 bytes, the others of 8. */
static void *run(void *argument)
{
	struct runner *runner = argument;
	struct mmc_node_request *request;

	runner->rv = start(runner->rank, runner->rank == 2 ? gather9 : gather8,
			   &request);
	while (runner->rv == MMC_EAGAIN)
		runner->rv = mmc_node_request_wait(request, MMC_S_NS);
	mmc_node_request_free(request);
	mmc_node_stream_failure(members.streams[runner->rank],
				&runner->failure);
	return NULL;
}

static void all_that_wait_are_told(void)
{
	for (int round = 0; round < 50; round++) {
		struct runner runners[4];
		pthread_t threads[4];

		members_open(&members, 4, members_options(4));
		for (uint32_t i = 0; i < 4; i++) {
			runners[i] = (struct runner){ .rank = i };
			pthread_create(&threads[i], NULL, run, &runners[i]);
		}
		for (uint32_t i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			CHECK_EQ(runners[i].rv, -MMC_EMISMATCH);
			CHECK_EQ(runners[i].failure.error, -MMC_EMISMATCH);
			CHECK_EQ(runners[i].failure.block_bytes_min, 8);
			CHECK_EQ(runners[i].failure.block_bytes_max, 9);
			CHECK_EQ(runners[i].failure.culprit,
				 runners[0].failure.culprit);
		}
		members_close(&members);
	}
}

CHECK_MAIN(CHECK_TEST(kinds_differ), CHECK_TEST(sizes_differ),
	   CHECK_TEST(roots_differ), CHECK_TEST(counts_differ),
	   CHECK_TEST(lengths_differ),
	   CHECK_TEST(later_operations_are_not_blamed),
	   CHECK_TEST(the_first_that_differs_is_named),
	   CHECK_TEST(hostile_words_are_not_believed),
	   CHECK_TEST(only_filled_pieces_are_compared),
	   CHECK_TEST(all_that_wait_are_told))
