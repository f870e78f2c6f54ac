/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that a proxy carries out begin, end and find their memory like any others. */
#include "engine/remote/requests.h"

#include "gathers.h"

/* An operation that is not ready holds back those behind it, and begins once it is. */
static void unready_requests_wait(void)
{
	struct mmc_operation operation;
	struct mmc_request *behind;

	begin_job();
	operation = gather(0, results[0], 1);
	operation.unready = 1;
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	operation = gather(0, results[2], 3);
	CHECK_EQ(mmc_start(job.ranks[0].stream, &operation, 0, &behind),
		 MMC_EAGAIN);
	operation = gather(1, results[1], 2);
	CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
	CHECK_EQ(mmc_request_wait(job.ranks[1].request, 2 * SLICE_NS),
		 MMC_EAGAIN);
	CHECK_EQ(job.ranks[0].team->posted->count, 0);
	mmc_request_ready(job.ranks[0].request);
	CHECK_EQ(finish(&job.ranks[0]), 0);
	CHECK_EQ(finish(&job.ranks[1]), 0);
	CHECK_EQ(results[0][2 * NBYTES - 1], 2);
	CHECK_EQ(results[1][0], 1);
	operation = gather(1, results[3], 4);
	CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
	CHECK_EQ(finish(&job.ranks[1]), 0);
	job.ranks[0].request = behind;
	CHECK_EQ(finish(&job.ranks[0]), 0);
	CHECK_EQ(results[2][2 * NBYTES - 1], 4);
	end_job();
}

/* Who waits for any end is notified, though the caller never comes back. */
static void ends_are_notified(void)
{
	struct mmc_operation operation;
	uint64_t nended = 0;

	begin_job();
	operation = gather(0, results[0], 1);
	operation.notifies = 1;
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	/* Meanwhile rank 0's responder looks in vain, and sleeps again. */
	operation = gather(1, results[1], 2);
	operation.unready = 1;
	CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
	CHECK_EQ(mmc_request_wait(job.ranks[1].request, 2 * SLICE_NS),
		 MMC_EAGAIN);
	mmc_request_ready(job.ranks[1].request);
	CHECK_EQ(mmc_engine_await(job.ranks[0].engine, &nended), 0);
	CHECK_EQ(nended, 1);
	CHECK_EQ(mmc_request_wait(job.ranks[0].request, 0), 0);
	CHECK_EQ(results[0][NBYTES], 2);
	CHECK_EQ(finish(&job.ranks[0]), 0);
	CHECK_EQ(finish(&job.ranks[1]), 0);
	end_job();
}

/* A rank that leaves still carries out what it has started, and starts nothing more. */
static void leaving_comes_after_what_was_started(void)
{
	struct mmc_operation operation;

	begin_job();
	operation = gather(0, results[0], 1);
	operation.unready = 1;
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	mmc_stream_leave(job.ranks[0].stream);
	mmc_request_ready(job.ranks[0].request);
	operation = gather(1, results[1], 2);
	CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
	CHECK_EQ(finish(&job.ranks[0]), 0);
	CHECK_EQ(finish(&job.ranks[1]), 0);
	CHECK_EQ(begin(&job.ranks[0], &operation), -MMC_EINVAL);
	CHECK(job.ranks[0].request == NULL);
	CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
	CHECK_EQ(finish(&job.ranks[1]), -MMC_ELEFT);
	end_job();
}

/* A completion of a number that is not in flight changes nothing. */
static void strange_completions_are_ignored(void)
{
	const struct mmc_offload_completion strange[] = {
		{ .request = 0 },
		{ .request = MMC_OFFLOAD_REQUESTS },
		{ .request = UINT32_MAX },
	};

	begin_job();
	for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++)
		mmc_remote_take_ended(job.ranks[0].team, &strange[i]);
	CHECK_EQ(job.ranks[0].team->posted->count, 0);
	end_job();
}

/* Closing a stream gives up what is in flight on it, and frees its numbers. */
static void closing_gives_up(void)
{
	struct mmc_operation operation;

	begin_job();
	for (int i = 0; i < 3; i++) {
		operation = gather(0, results[0], 1);
		CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	}
	CHECK_EQ(job.ranks[0].team->posted->count, 3);
	mmc_stream_close(job.ranks[0].stream);
	CHECK_EQ(job.ranks[0].team->posted->count, 0);
	job.ranks[0].request = NULL;
	njobs++;
	open_stream(&job, 0);
	end_job();
}

CHECK_MAIN(CHECK_TEST(unready_requests_wait), CHECK_TEST(ends_are_notified),
	   CHECK_TEST(leaving_comes_after_what_was_started),
	   CHECK_TEST(strange_completions_are_ignored),
	   CHECK_TEST(closing_gives_up))
