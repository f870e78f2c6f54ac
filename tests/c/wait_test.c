/* SPDX-License-Identifier: BSD-3-Clause */
/* How long members wait for each other, and what they say of one that does not come. */
#include "node/wait.h"

#include <pthread.h>

#include "node_processes.h"
#include "support/timer.h"

enum { NBYTES = 5000, SHORT_MS = 40 };

static struct members members;
static uint8_t recv[MEMBERS_MAX][MEMBERS_MAX * NBYTES];

static struct mmc_node_request *start(uint32_t rank, uint64_t nbytes)
{
	struct mmc_node_request *request;

	CHECK(start_gather(members.streams[rank], recv[rank], nbytes,
			   &request) >= 0);
	return request;
}

static void open_with(uint32_t n, uint64_t entry_ms, uint64_t late_ms)
{
	struct mmc_node_stream_options options = members_options(n);

	options.entry_timeout_ns = entry_ms * MMC_MS_NS;
	options.late_timeout_ns = late_ms * MMC_MS_NS;
	members_open(&members, n, options);
}

/* Waits in one long call, and checks how the request ends. */
static void check_end(struct mmc_node_request *request, int error,
		      uint32_t culprit)
{
	struct report report = finish_report(request, MMC_EAGAIN);

	CHECK_EQ(report.rv, error);
	CHECK_EQ(report.failure.error, error);
	CHECK_EQ(report.failure.culprit, culprit);
}

/* ---- members that do not come -------------------------------------------- */

/* Even in a call that may wait for an hour, the limit counts. */
static void a_member_that_never_enters(void)
{
	open_with(3, SHORT_MS, 0);
	check_end(start(0, 8), -MMC_ENOENTRY, 1);
	members_close(&members);
}

/* The same in many short calls, between which the member looks at nothing else. */
static void a_member_that_never_enters_in_short_calls(void)
{
	struct mmc_node_request *request;

	open_with(2, SHORT_MS, 0);
	request = start(0, 8);
	while (mmc_node_request_wait(request, MMC_MS_NS) == MMC_EAGAIN)
		;
	check_end(request, -MMC_ENOENTRY, 1);
	members_close(&members);
}

/* Time in which this process did not run is not held against others. */
static void time_that_was_not_observed_does_not_count(void)
{
	struct mmc_node_request *request;

	open_with(2, 1000, 0);
	request = start(0, 8);
	CHECK_EQ(mmc_node_request_wait(request, 0), MMC_EAGAIN);
	/* As if the first look had been long ago. */
	request->observed_ns -= 10 * MMC_S_NS;
	request->looked_ns -= 10 * MMC_S_NS;
	CHECK_EQ(mmc_node_request_wait(request, 0), MMC_EAGAIN);
	CHECK(request->stalled_ns <= 2 * MMC_OBSERVED_NS_MAX);
	mmc_node_request_cancel(request);
	mmc_node_request_free(request);
	members_close(&members);
}

static void without_limits_a_member_may_take_as_long_as_it_likes(void)
{
	struct mmc_node_request *request;

	open_with(2, 0, 0);
	request = start(0, 8);
	CHECK_EQ(mmc_node_request_wait(request, SHORT_MS * MMC_MS_NS),
		 MMC_EAGAIN);
	CHECK(start(1, 8) == NULL);
	check_end(request, 0, 0);
	members_close(&members);
}

static void a_member_that_has_left(void)
{
	open_with(3, 0, 0);
	mmc_node_stream_leave(members.streams[1]);
	check_end(start(0, 8), -MMC_ELEFT, 1);
	members_close(&members);
}

/* Who leaves after it has entered is not missed. */
static void a_member_that_leaves_after_it_has_entered(void)
{
	struct mmc_node_request *requests[2];

	open_with(3, 0, 0);
	for (uint32_t i = 0; i < 2; i++)
		requests[i] = start(i, 8);
	mmc_node_stream_leave(members.streams[1]);
	CHECK_EQ(mmc_node_request_wait(requests[0], 2 * SHORT_MS * MMC_MS_NS),
		 MMC_EAGAIN);
	CHECK(start(2, 8) == NULL);
	for (uint32_t i = 0; i < 2; i++)
		check_end(requests[i], 0, 0);
	members_close(&members);
}

/* A root whose slots are full awaits a reader, which has left. */
static void a_reader_that_has_left(void)
{
	struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.block_bytes = 3 * 4096,
		.recv = recv[0],
	};
	struct mmc_node_request *request;

	open_with(2, 0, 0);
	mmc_node_stream_leave(members.streams[1]);
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 MMC_EAGAIN);
	check_end(request, -MMC_ELEFT, 1);
	members_close(&members);
}

static void a_member_that_has_entered_and_stands_still(void)
{
	struct mmc_node_request *request;

	open_with(2, 0, SHORT_MS);
	request = start(1, NBYTES);
	check_end(start(0, NBYTES), -MMC_ELATE, 1);
	check_end(request, -MMC_ELATE, 1);
	members_close(&members);
}

/* Each move begins the wait anew, whoever has looked at the clock between them. */
static void an_operation_that_moves_is_not_late(void)
{
	struct mmc_node_stream_options options = members_options(2);
	struct mmc_node_request *requests[2];
	uint32_t nrounds = 0;

	options.nslots = 1;
	options.slot_bytes = 2 * 64;
	options.entry_timeout_ns = SHORT_MS * MMC_MS_NS;
	options.late_timeout_ns = SHORT_MS * MMC_MS_NS;
	members_open(&members, 2, options);
	for (uint32_t i = 0; i < 2; i++)
		requests[i] = start(i, 20 * 64);
	while (mmc_node_request_wait(requests[0], 0) == MMC_EAGAIN) {
		mmc_node_request_wait(requests[1], 0);
		usleep(SHORT_MS * 1000 / 4);
		nrounds++;
	}
	CHECK(nrounds > 8);
	for (uint32_t i = 0; i < 2; i++)
		check_end(requests[i], 0, 0);
	members_close(&members);
}

/* Whoever is waited for has failed the operation in which it is missing. */
static void the_oldest_operation_is_what_fails(void)
{
	struct mmc_node_request *requests[2];
	struct mmc_failure failure;

	open_with(2, SHORT_MS, 0);
	for (uint32_t i = 0; i < 2; i++)
		requests[i] = start(0, 8);
	check_end(requests[1], -MMC_EPOISONED, 1);
	mmc_node_stream_failure(members.streams[0], &failure);
	CHECK_EQ(failure.epoch, 1);
	check_end(requests[0], -MMC_ENOENTRY, 1);
	members_close(&members);
}

/* Who has left in the midst of an operation still owes its end. */
static void a_member_that_leaves_in_an_operation(void)
{
	struct mmc_node_request *requests[2];

	open_with(2, 0, 0);
	requests[1] = start(1, NBYTES);
	mmc_node_stream_leave(members.streams[1]);
	requests[0] = start(0, NBYTES);
	CHECK_EQ(mmc_node_request_wait(requests[0], 2 * SHORT_MS * MMC_MS_NS),
		 MMC_EAGAIN);
	while (mmc_node_request_wait(requests[1], 0) == MMC_EAGAIN)
		mmc_node_request_wait(requests[0], 0);
	for (uint32_t i = 0; i < 2; i++)
		check_end(requests[i], 0, 0);
	members_close(&members);
}

/* ---- whom a stream waits for --------------------------------------------- */

static struct mmc_node_awaited awaited_by(uint32_t rank)
{
	return mmc_node_find_awaited(members.streams[rank]);
}

static void the_first_member_without_its_part_is_awaited(void)
{
	struct mmc_node_request *requests[4];

	open_with(4, 0, 0);
	requests[1] = start(1, 8);
	CHECK_EQ(awaited_by(1).rank, 2);
	CHECK(!awaited_by(1).entered && !awaited_by(1).moved);
	requests[2] = start(2, 8);
	CHECK_EQ(awaited_by(1).rank, 3);
	requests[3] = start(3, 8);
	CHECK_EQ(awaited_by(1).rank, 0);
	CHECK(start(0, 8) == NULL);
	CHECK(awaited_by(1).moved);
	for (uint32_t i = 1; i < 4; i++)
		check_end(requests[i], 0, 0);
	members_close(&members);
}

/* Sleeps as member 0, which must not happen since what it awaited has come. */
static void check_sleeps_not(void)
{
	struct mmc_node_stream *stream = members.streams[0];

	CHECK(awaited_by(0).moved);
	pthread_mutex_lock(&stream->mutex);
	mmc_node_sleep(stream, 10 * MMC_S_NS);
	pthread_mutex_unlock(&stream->mutex);
	CHECK_EQ(stream->counts.sleeps, 0);
}

/*
 * A part that comes after a member has looked for it, and before it sleeps, must not be
 * slept over: nothing else moves the member then.
 */
static void a_part_that_has_come_lets_nobody_sleep(void)
{
	struct mmc_node_request *request;

	open_with(2, 0, 0);
	request = start(0, 8);
	CHECK(start(1, 8) == NULL);
	check_sleeps_not();
	check_end(request, 0, 0);
	members_close(&members);
}

static void a_slot_that_is_free_lets_nobody_sleep(void)
{
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.block_bytes = 3 * 4096,
		.recv = recv[0],
	};
	struct mmc_node_request *requests[2];

	open_with(2, 0, 0);
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(mmc_node_start(members.streams[i], &operation, 0,
					&requests[i]),
			 MMC_EAGAIN);
	check_sleeps_not();
	check_end(requests[0], 0, 0);
	check_end(requests[1], 0, 0);
	members_close(&members);
}

/* ---- threads ------------------------------------------------------------- */

static void *wait_long(void *request)
{
	check_end(request, 0, 0);
	return NULL;
}

/* Each of two requests of a stream is waited for by a thread of its own. */
static void two_threads_may_wait_at_once(void)
{
	for (int round = 0; round < 200; round++) {
		struct mmc_node_request *requests[2];
		pthread_t threads[2];

		open_with(2, 0, 0);
		for (uint32_t i = 0; i < 2; i++)
			requests[i] = start(0, 8);
		for (uint32_t i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, wait_long,
				       requests[1 - i]);
		for (uint32_t i = 0; i < 2; i++) {
			if (round % 2)
				usleep(100);
			mmc_node_request_free(start(1, 8));
		}
		for (uint32_t i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		members_close(&members);
	}
}

CHECK_MAIN(CHECK_TEST(a_member_that_never_enters),
	   CHECK_TEST(a_member_that_never_enters_in_short_calls),
	   CHECK_TEST(time_that_was_not_observed_does_not_count),
	   CHECK_TEST(without_limits_a_member_may_take_as_long_as_it_likes),
	   CHECK_TEST(a_member_that_has_left),
	   CHECK_TEST(a_member_that_leaves_after_it_has_entered),
	   CHECK_TEST(a_reader_that_has_left),
	   CHECK_TEST(a_member_that_has_entered_and_stands_still),
	   CHECK_TEST(an_operation_that_moves_is_not_late),
	   CHECK_TEST(the_oldest_operation_is_what_fails),
	   CHECK_TEST(a_member_that_leaves_in_an_operation),
	   CHECK_TEST(the_first_member_without_its_part_is_awaited),
	   CHECK_TEST(a_part_that_has_come_lets_nobody_sleep),
	   CHECK_TEST(a_slot_that_is_free_lets_nobody_sleep),
	   CHECK_TEST(two_threads_may_wait_at_once))
