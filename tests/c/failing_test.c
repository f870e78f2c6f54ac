/* SPDX-License-Identifier: BSD-3-Clause */
/* The first failure of a stream is that of all its members, and ends all they wait for. */
#include "node/failing.h"

#include <mpimcast/mmc.h>
#include <pthread.h>
#include <string.h>

#include "node_members.h"
#include "support/error.h"
#include "support/prng.h"

enum { NBYTES = 5000, NROUNDS = 100 };

static struct members members;
static uint8_t recv[MEMBERS_MAX][MEMBERS_MAX * NBYTES];

/* Starts an in-place Allgather of blocks of `nbytes`. */
static int start(uint32_t rank, uint64_t nbytes,
		 struct mmc_node_request **request)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = nbytes,
		.recv = recv[rank],
	};

	return mmc_node_start(members.streams[rank], &operation, 0, request);
}

static struct mmc_failure failure_of(struct mmc_node_request *request)
{
	struct mmc_failure failure;

	mmc_node_request_failure(request, &failure);
	return failure;
}

static void a_cancel_reaches_all(void)
{
	struct mmc_node_request *requests[3];
	struct mmc_node_request *none;
	struct mmc_failure failure;

	members_open(&members, 3, members_options(3));
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(start(i, 8, &requests[i]), MMC_EAGAIN);
	mmc_node_request_cancel(requests[1]);
	for (uint32_t i = 0; i < 2; i++) {
		mmc_error_set("another failure");
		CHECK_EQ(mmc_node_request_wait(requests[i], 0), -MMC_ECANCELED);
		CHECK_EQ(strlen(mmc_last_error()), 0);
		failure = failure_of(requests[i]);
		CHECK_EQ(failure.error, -MMC_ECANCELED);
		CHECK_EQ(failure.culprit, 1);
		CHECK_EQ(failure.epoch, 1);
		CHECK_EQ(failure.missing_chunks, 1);
		mmc_node_request_free(requests[i]);
	}
	/* The third starts too late, and fails alike; nobody can start more. */
	CHECK_EQ(start(2, 8, &requests[2]), -MMC_ECANCELED);
	failure = failure_of(requests[2]);
	CHECK_EQ(failure.culprit, 1);
	CHECK_EQ(failure.epoch, 1);
	CHECK_EQ(failure.missing_chunks, 1);
	mmc_node_request_free(requests[2]);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(start(i, 8, &none), -MMC_EPOISONED);
		CHECK(none == NULL);
		mmc_error_set("another failure");
		mmc_node_stream_failure(members.streams[i], &failure);
		CHECK_EQ(strlen(mmc_last_error()), 0);
		CHECK_EQ(failure.error, -MMC_ECANCELED);
		CHECK_EQ(failure.culprit, 1);
	}
	members_close(&members);
}

/* Cancelling what has ended changes nothing. */
static void a_late_cancel_does_nothing(void)
{
	struct mmc_node_request *request;
	struct mmc_node_request *none;
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(start(0, 8, &request), MMC_EAGAIN);
	CHECK_EQ(start(1, 8, &none), 0);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	mmc_node_request_cancel(request);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	mmc_node_request_free(request);
	mmc_node_stream_failure(members.streams[1], &failure);
	CHECK_EQ(failure.error, 0);
	members_close(&members);
}

static void the_first_failure_wins(void)
{
	struct mmc_node_request *requests[2];
	struct mmc_failure later;

	members_open(&members, 2, members_options(2));
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(start(0, 8, &requests[i]), MMC_EAGAIN);
	mmc_node_request_cancel(requests[0]);
	later = mmc_node_failure(requests[0], -MMC_ELATE, 0);
	pthread_mutex_lock(&members.streams[1]->mutex);
	mmc_node_fail(members.streams[1], &later);
	pthread_mutex_unlock(&members.streams[1]->mutex);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(members.streams[i]->failure.error, -MMC_ECANCELED);
		CHECK_EQ(mmc_node_request_wait(requests[i], 0),
			 i == 0 ? -MMC_ECANCELED : -MMC_EPOISONED);
		mmc_node_request_free(requests[i]);
	}
	members_close(&members);
}

/* A failure that is being written is not read before it is whole. */
static void half_a_failure_is_not_adopted(void)
{
	struct mmc_node_stream *stream;
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	stream = members.streams[0];
	atomic_store(&stream->head->failing, MMC_NODE_FAILING);
	stream->head->failure.error = -MMC_EGONE;
	mmc_node_stream_failure(stream, &failure);
	CHECK_EQ(failure.error, 0);
	atomic_store(&stream->head->failing, MMC_NODE_FAILED);
	mmc_node_stream_failure(stream, &failure);
	CHECK_EQ(failure.error, -MMC_EGONE);
	members_close(&members);
}

/* Who closes a stream cannot wait until another member has written its failure. */
static void giving_up_waits_for_nobody(void)
{
	struct mmc_node_request *request;
	struct mmc_node_stream *stream;
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	stream = members.streams[0];
	CHECK_EQ(start(0, 8, &request), MMC_EAGAIN);
	atomic_store(&stream->head->failing, MMC_NODE_FAILING);
	failure = mmc_node_failure(request, -MMC_ECANCELED, 0);
	pthread_mutex_lock(&stream->mutex);
	mmc_node_fail(stream, &failure);
	CHECK(!request->complete);
	mmc_node_give_up(stream, &failure);
	pthread_mutex_unlock(&stream->mutex);
	CHECK_EQ(mmc_node_request_wait(request, 0), -MMC_ECANCELED);
	mmc_node_request_free(request);
	members_close(&members);
}

/* Each request says how many pieces it lacks itself, on each member. */
static void missing_chunks_are_each_requests_own(void)
{
	struct mmc_node_request *requests[2];
	struct mmc_node_request *other;
	uint32_t npieces;

	members_open(&members, 2, members_options(2));
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(start(0, NBYTES, &requests[i]), MMC_EAGAIN);
	CHECK_EQ(start(1, NBYTES, &other), MMC_EAGAIN);
	npieces = other->pieces.npieces;
	CHECK_EQ(npieces, 3);
	/* Both have read the two slots before they learn of it. */
	mmc_node_request_cancel(other);
	CHECK_EQ(failure_of(other).missing_chunks, 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(mmc_node_request_wait(requests[i], 0),
			 i == 0 ? -MMC_ECANCELED : -MMC_EPOISONED);
		CHECK_EQ(failure_of(requests[i]).missing_chunks,
			 i == 0 ? 1 : npieces);
		mmc_node_request_free(requests[i]);
	}
	mmc_node_request_free(other);
	members_close(&members);
}

/* Buffers of an operation that has failed are the program's again. */
static void nothing_is_written_after_a_failure(void)
{
	struct mmc_node_request *requests[2];

	members_open(&members, 2, members_options(2));
	CHECK_EQ(start(0, NBYTES, &requests[0]), MMC_EAGAIN);
	memset(recv[0], 0xee, sizeof(recv[0]));
	mmc_node_request_cancel(requests[0]);
	CHECK_EQ(start(1, NBYTES, &requests[1]), -MMC_ECANCELED);
	mmc_node_request_free(requests[1]);
	CHECK_EQ(mmc_node_request_wait(requests[0], 10 * MMC_MS_NS),
		 -MMC_ECANCELED);
	for (uint64_t i = 0; i < 2 * NBYTES; i++)
		CHECK_EQ(recv[0][i], 0xee);
	mmc_node_request_free(requests[0]);
	members_close(&members);
}

/* Who awaits notifications hears of a failure, too. */
static void a_failure_is_notified(void)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.notifies = 1,
		.block_bytes = 1,
		.recv = recv[0],
	};
	struct mmc_node_request *requests[2];
	uint32_t nrings = 0;

	members_open(&members, 3, members_options(3));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0,
				&requests[0]),
		 MMC_EAGAIN);
	CHECK_EQ(start(1, 1, &requests[1]), MMC_EAGAIN);
	while (mmc_node_request_wait(requests[0], 0) == MMC_EAGAIN) {
		mmc_node_request_cancel(requests[1]);
		CHECK_EQ(mmc_node_await(members.nodes[0], &nrings), 0);
	}
	CHECK(nrings > 0);
	CHECK_EQ(members.nodes[0]->nwatched, 0);
	for (uint32_t i = 0; i < 2; i++)
		mmc_node_request_free(requests[i]);
	members_close(&members);
}

/* ---- in threads ---------------------------------------------------------- */

struct runner {
	uint32_t rank;
	uint32_t
		ncancels; /* operations before this one that it does not cancel */
	int error;
};

/* Gathers until the stream fails, and cancels one operation itself. */
static void *run(void *argument)
{
	struct runner *runner = argument;
	int rv = 0;

	for (uint32_t i = 0; rv == 0; i++) {
		struct mmc_node_request *request;

		rv = start(runner->rank, NBYTES, &request);
		if (i == runner->ncancels && request != NULL)
			mmc_node_request_cancel(request);
		while (rv == MMC_EAGAIN)
			rv = mmc_node_request_wait(request, MMC_S_NS);
		mmc_node_request_free(request);
	}
	runner->error = rv;
	return NULL;
}

/* However many cancel at once, all members name the same one. */
static void all_members_name_the_same_failure(void)
{
	struct mmc_prng prng = { check_seed() };

	for (uint32_t round = 0; round < NROUNDS; round++) {
		struct runner runners[4];
		pthread_t threads[4];
		struct mmc_failure failures[4];

		members_open(&members, 4, members_options(4));
		for (uint32_t i = 0; i < 4; i++) {
			runners[i] = (struct runner){
				.rank = i,
				.ncancels = (uint32_t)mmc_prng_below(&prng, 20),
			};
			pthread_create(&threads[i], NULL, run, &runners[i]);
		}
		for (uint32_t i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			mmc_node_stream_failure(members.streams[i],
						&failures[i]);
			CHECK(runners[i].error == -MMC_ECANCELED ||
			      runners[i].error == -MMC_EPOISONED);
			CHECK_EQ(failures[i].error, -MMC_ECANCELED);
			CHECK_EQ(failures[i].culprit, failures[0].culprit);
			CHECK_EQ(failures[i].epoch, failures[0].epoch);
		}
		members_close(&members);
	}
}

CHECK_MAIN(CHECK_TEST(a_cancel_reaches_all),
	   CHECK_TEST(a_late_cancel_does_nothing),
	   CHECK_TEST(the_first_failure_wins),
	   CHECK_TEST(half_a_failure_is_not_adopted),
	   CHECK_TEST(giving_up_waits_for_nobody),
	   CHECK_TEST(missing_chunks_are_each_requests_own),
	   CHECK_TEST(nothing_is_written_after_a_failure),
	   CHECK_TEST(a_failure_is_notified),
	   CHECK_TEST(all_members_name_the_same_failure))
