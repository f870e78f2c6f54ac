/* SPDX-License-Identifier: BSD-3-Clause */
/* How operations end: buffers, copies, notifications, and the reasons for failures. */
#include "engine/completion.h"

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
	CHECK_EQ(hub[0].engine->nended, 0);
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
	CHECK(hub[0].team->memory_may_be_read);
	CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
	CHECK_EQ(nended, 1);
	CHECK(hub_complete(requests[1], MMC_S_NS));
	for (uint32_t r = 0; r < 2; r++)
		mmc_request_free(requests[r]);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(done_and_closed), CHECK_TEST(failed))
