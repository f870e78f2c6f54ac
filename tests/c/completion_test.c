/* SPDX-License-Identifier: BSD-3-Clause */
/* How operations end: buffers, copies, notifications, and the reasons for failures. */
#include "engine/completion.h"
#include "engine/threads/threads.h"

#include "hub.h"

static uint8_t recv[2][2 * HUB_CHUNK_BYTES];

/* Starts an operation on both ranks; rank 0 will be notified of its end. */
static void start(struct mmc_request **requests, uint32_t kind)
{
	for (uint32_t r = 0; r < 2; r++) {
		const struct mmc_operation operation = {
			.kind = r == 0 ? MMC_ALLGATHER : kind,
			.block_bytes = HUB_CHUNK_BYTES,
			.notifies = r == 0,
			.recv = recv[r],
		};

		memset(recv[r] + r * HUB_CHUNK_BYTES, (int)r + 1,
		       HUB_CHUNK_BYTES);
		CHECK_EQ(mmc_start(hub[r].stream, &operation, 0, &requests[r]),
			 MMC_EAGAIN);
	}
}

/*
 * An operation closes once a later one shows that all ranks are done. Its copy is idle
 * from then on.
 */
static void done_and_closed(void)
{
	struct mmc_request *requests[2];
	struct mmc_copies *copies;
	uint64_t nended = 0;

	hub_open(&(struct hub_options){ .nranks = 2 });
	copies = &hub[0].stream->copies;
	start(requests, MMC_ALLGATHER);
	CHECK_EQ(hub[0].engine->threads->nended, 0);
	CHECK(hub_complete(requests[0], MMC_S_NS));
	CHECK(hub_complete(requests[1], MMC_S_NS));
	CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
	CHECK_EQ(nended, 1);
	CHECK_EQ(hub[0].engine->nexpected, 0);
	CHECK_EQ(hub[0].engine->nfinished, 1);
	hub_check(recv[0], HUB_CHUNK_BYTES);
	CHECK(requests[0]->copy != NULL);
	CHECK_BYTES(requests[0]->copy->bytes, recv[0], HUB_CHUNK_BYTES);
	mmc_request_free(requests[0]);
	mmc_request_free(requests[1]);
	start(requests, MMC_ALLGATHER);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		mmc_request_free(requests[r]);
	}
	hub_settle();
	CHECK(copies->idle != NULL);
	hub_close();
}

/*
 * Where the window limits an operation, and its thread has waited for a processor for
 * most of the time, the window is widened.
 */
static void a_wait_for_processors(void)
{
	for (uint32_t waited = 0; waited < 2; waited++) {
		struct mmc_request *requests[2];

		hub_open(&(struct hub_options){ .nranks = 2 });
		for (uint32_t r = 0; r < 2; r++)
			mmc_path_set_window(&hub[r].team->path,
					    HUB_CHUNK_BYTES);
		start(requests, MMC_ALLGATHER);
		for (uint32_t r = 0; r < 2; r++) {
			requests[r]->run_delay = mmc_run_delay_look();
			requests[r]->run_delay.at_ns -= MMC_S_NS;
			requests[r]->run_delay.delay_ns -= waited * MMC_S_NS;
			if (requests[r]->run_delay.thread == NULL)
				exit(77); /* the kernel counts no run delays */
		}
		for (uint32_t r = 0; r < 2; r++) {
			CHECK(hub_complete(requests[r], MMC_S_NS));
			mmc_request_free(requests[r]);
		}
		for (uint32_t r = 0; r < 2; r++)
			CHECK_EQ(mmc_path_window_bytes(&hub[r].team->path),
				 HUB_CHUNK_BYTES << waited);
		hub_close();
	}
}

/* A failure reports how the ranks' operations differ. */
static void failed(void)
{
	struct mmc_request *requests[2];
	struct mmc_failure failure;
	uint64_t nended = 0;

	hub_open(&(struct hub_options){ .nranks = 2 });
	start(requests, MMC_BCAST);
	CHECK(hub_complete(requests[0], MMC_S_NS));
	CHECK_EQ(mmc_request_wait(requests[0], 0), -MMC_EMISMATCH);
	mmc_request_failure(requests[0], &failure);
	CHECK_EQ(failure.error, -MMC_EMISMATCH);
	CHECK_EQ(failure.epoch, 1);
	CHECK_EQ(failure.missing_chunks, 1);
	CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
	CHECK_EQ(failure.kind_max, MMC_BCAST);
	CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
	CHECK_EQ(nended, 1);
	CHECK(hub_complete(requests[1], MMC_S_NS));
	for (uint32_t r = 0; r < 2; r++)
		mmc_request_free(requests[r]);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(a_wait_for_processors), CHECK_TEST(done_and_closed),
	   CHECK_TEST(failed))
