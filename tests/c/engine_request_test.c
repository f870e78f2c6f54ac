/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of operations: what is refused, what waits in the queue, and in what order. */
#include "engine/request.h"

#include "hub.h"

#define NREQUESTS (MMC_EPOCHS_OPEN_MAX + 3)

static const struct hub_options pair = { .nranks = 2 };

static uint8_t recv[2][NREQUESTS][2 * HUB_CHUNK_BYTES];

/* Operations beyond those that may be in flight wait, then run in order. */
static void a_queue_in_order(void)
{
	struct mmc_request *requests[2][NREQUESTS];

	hub_open(&pair);
	for (uint32_t i = 0; i < NREQUESTS; i++)
		requests[0][i] = hub_gather(0, recv[0][i], HUB_CHUNK_BYTES);
	CHECK(requests[0][MMC_EPOCHS_ACTIVE_MAX - 1]->op != NULL);
	for (uint32_t i = MMC_EPOCHS_ACTIVE_MAX; i < NREQUESTS; i++)
		CHECK(requests[0][i]->op == NULL);
	for (uint32_t i = 0; i < NREQUESTS; i++)
		requests[1][i] = hub_gather(1, recv[1][i], HUB_CHUNK_BYTES);
	for (uint32_t i = 0; i < NREQUESTS; i++)
		for (uint32_t r = 0; r < 2; r++) {
			CHECK(hub_complete(requests[r][i], MMC_S_NS));
			hub_check(recv[r][i], HUB_CHUNK_BYTES);
			mmc_request_free(requests[r][i]);
		}
	hub_close();
}

/* This rank's block is put in its place at the start. */
static void this_ranks_block(void)
{
	uint8_t send[10];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = sizeof(send),
		.send = send,
		.recv = recv[1][0],
	};
	struct mmc_request *request;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	memset(send, 9, sizeof(send));
	memset(recv[1][0], 0, sizeof(recv[1][0]));
	CHECK_EQ(mmc_start(hub[0].stream, &operation, 0, &request), MMC_EAGAIN);
	CHECK_BYTES(recv[1][0], send, sizeof(send));
	CHECK_EQ(recv[1][0][sizeof(send)], 0);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

static void refused(const struct mmc_operation *operation, const char *why)
{
	struct mmc_request *request;

	CHECK_EQ(mmc_start(hub[0].stream, operation, 0, &request), -MMC_EINVAL);
	CHECK(request == NULL);
	CHECK(strstr(mmc_last_error(), why) != NULL);
}

static void nonsense_is_refused(void)
{
	const struct mmc_operation huge = {
		.kind = MMC_ALLGATHER,
		.block_bytes = UINT64_C(1) << 50,
		.recv = recv[0],
	};
	const struct mmc_operation unknown = { .kind = 99 };
	const struct mmc_operation right = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 1,
		.recv = recv[0],
	};

	hub_open(&pair);
	refused(&huge, "CHUNK_BYTES");
	refused(&unknown, "99");
	mmc_stream_leave(hub[0].stream);
	refused(&right, "left");
	hub_close();
}

/* Operations that wait in the queue of a stream fail with the stream. */
static void a_poisoned_queue(void)
{
	struct mmc_request *requests[NREQUESTS];
	struct mmc_failure failure;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	for (uint32_t i = 0; i < NREQUESTS; i++)
		requests[i] = hub_gather(0, recv[0][i], HUB_CHUNK_BYTES);
	mmc_request_cancel(requests[0]);
	hub_settle();
	CHECK_EQ(mmc_request_wait(requests[0], 0), -MMC_ECANCELED);
	CHECK_EQ(mmc_request_wait(requests[NREQUESTS - 1], 0), -MMC_EPOISONED);
	mmc_request_failure(requests[NREQUESTS - 1], &failure);
	CHECK_EQ(failure.epoch, 1);
	CHECK_EQ(failure.culprit, 0);
	for (uint32_t i = 0; i < NREQUESTS; i++)
		mmc_request_free(requests[i]);
	hub_close();
}

/* Starts an Allgather whose block comes later. */
static struct mmc_request *start_unready(uint32_t rank, const uint8_t *send,
					 uint8_t *to)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.unready = 1,
		.block_bytes = HUB_CHUNK_BYTES,
		.send = send,
		.recv = to,
	};
	struct mmc_request *request;

	CHECK_EQ(mmc_start(hub[rank].stream, &operation, 0, &request),
		 MMC_EAGAIN);
	return request;
}

/* An operation that is not ready keeps its place, and its memory is not touched. */
static void an_unready_operation_waits(void)
{
	uint8_t send[HUB_CHUNK_BYTES] = { 0 };
	struct mmc_request *requests[2][2];

	hub_open(&pair);
	memset(recv, 0, sizeof(recv));
	requests[0][0] = start_unready(0, send, recv[0][0]);
	requests[0][1] = hub_gather(0, recv[0][1], HUB_CHUNK_BYTES);
	for (uint32_t i = 0; i < 2; i++)
		requests[1][i] = hub_gather(1, recv[1][i], HUB_CHUNK_BYTES);
	hub_settle();
	CHECK(requests[0][0]->op == NULL);
	CHECK(requests[0][1]->op == NULL);
	for (uint32_t i = 0; i < 2 * HUB_CHUNK_BYTES; i++)
		CHECK_EQ(recv[0][0][i], 0);
	/* What hub_gather() sends from rank 0. */
	memcpy(send, recv[0][1], sizeof(send));
	mmc_request_ready(requests[0][0]);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t r = 0; r < 2; r++) {
			CHECK(hub_complete(requests[r][i], MMC_S_NS));
			hub_check(recv[r][i], HUB_CHUNK_BYTES);
			mmc_request_free(requests[r][i]);
		}
	hub_close();
}

/* A failure does not wait for operations that are not ready. */
static void an_unready_operation_is_cancelled(void)
{
	struct mmc_request *request;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	request = start_unready(0, NULL, recv[0][0]);
	mmc_request_cancel(request);
	hub_settle();
	CHECK(mmc_request_wait(request, 0) < 0);
	mmc_request_ready(request);
	CHECK(request->op == NULL);
	mmc_request_free(request);
	hub_close();
}

/* Waits grow with the time that has passed, but not while a rank is absent. */
static void the_slices_of_a_wait(void)
{
	/* More than the messages of the entry barrier carry. */
	enum { BLOCK_BYTES = 64 * HUB_CHUNK_BYTES };
	static uint8_t results[2][2 * BLOCK_BYTES];
	const uint64_t slice_ns = MMC_MS_NS;
	struct mmc_request *requests[2];
	uint64_t start_ns;

	hub_open(&pair);
	requests[0] = hub_gather(0, results[0], BLOCK_BYTES);
	start_ns = requests[0]->start_ns;
	hub_settle();
	CHECK_EQ(mmc_request_slice_ns(requests[0], slice_ns,
				      start_ns + MMC_S_NS),
		 slice_ns);
	requests[1] = hub_gather(1, results[1], BLOCK_BYTES);
	/* Rank 1 has heard of rank 0, which does not send yet. */
	start_ns = requests[1]->start_ns;
	while (!mmc_op_has_begun(requests[1]->op))
		mmc_engine_step(hub[1].engine);
	CHECK_EQ(mmc_request_wait(requests[1], 0), MMC_EAGAIN);
	CHECK_EQ(mmc_request_slice_ns(requests[1], slice_ns, start_ns),
		 slice_ns);
	CHECK_EQ(mmc_request_slice_ns(requests[1], slice_ns,
				      start_ns + 24 * slice_ns),
		 3 * slice_ns);
	CHECK_EQ(mmc_request_slice_ns(requests[1], slice_ns,
				      start_ns + MMC_S_NS),
		 MMC_SLICES_MAX * slice_ns);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		mmc_request_free(requests[r]);
	}
	hub_close();
}

CHECK_MAIN(CHECK_TEST(the_slices_of_a_wait), CHECK_TEST(a_queue_in_order),
	   CHECK_TEST(this_ranks_block), CHECK_TEST(an_unready_operation_waits),
	   CHECK_TEST(an_unready_operation_is_cancelled),
	   CHECK_TEST(nonsense_is_refused), CHECK_TEST(a_poisoned_queue))
