/* SPDX-License-Identifier: BSD-3-Clause */
/* Partial completion of requests from their start to their end, step by step. */
#include "engine/landed.h"

#include "hub.h"
#include "present_bits.h"

enum { BLOCK_BYTES = 20 * HUB_CHUNK_BYTES + 7, RANKS = 3 };

static const struct hub_options three = { .nranks = RANKS };
/* Rank 0 alone has an engine, and nobody answers it. */
static const struct hub_options alone = { .nranks = RANKS, .nplayed = 2 };

static uint8_t recv[RANKS][RANKS * BLOCK_BYTES];

/* Starts an Allgather of blocks that each hold the number of their rank. */
static struct mmc_request *start(uint32_t rank, bool partial, bool notifies)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = BLOCK_BYTES,
		.recv = recv[rank],
		.partial = partial,
		.notifies = notifies,
	};
	struct mmc_request *request;

	memset(recv[rank], 0xee, sizeof(recv[rank]));
	memset(recv[rank] + rank * BLOCK_BYTES, (int)rank, BLOCK_BYTES);
	CHECK_EQ(mmc_start(hub[rank].stream, &operation, 0, &request),
		 MMC_EAGAIN);
	return request;
}

static int look_block(struct mmc_request *request, uint32_t index)
{
	uint32_t rank = UINT32_MAX;
	int rv = mmc_request_wait_block(request, index, 0, &rank);

	return rv == 0 ? (int)rank : -1000 + rv;
}

static int look_range(struct mmc_request *request, uint32_t rank,
		      uint64_t first, uint64_t nbytes)
{
	const struct mmc_range range = {
		.rank = rank,
		.first_bytes = first,
		.nbytes = nbytes,
	};

	return mmc_request_wait_range(request, &range, 0);
}

static void this_ranks_block_is_first(void)
{
	struct mmc_request *request;

	hub_open(&alone);
	request = start(0, true, false);
	CHECK_EQ(look_block(request, 0), 0);
	CHECK_EQ(look_range(request, 0, 0, BLOCK_BYTES), 0);
	CHECK_EQ(look_range(request, 1, 0, 1), MMC_EAGAIN);
	CHECK_EQ(look_range(request, 1, 5, 0), 0);
	CHECK_EQ(look_block(request, 1), -1000 + MMC_EAGAIN);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* A request without `partial` has all blocks at its end, this rank's first. */
static void all_at_the_end(void)
{
	struct mmc_request *requests[RANKS];
	struct mmc_present *present;

	hub_open(&three);
	for (uint32_t r = 0; r < RANKS; r++)
		requests[r] = start(r, false, false);
	CHECK_EQ(look_block(requests[1], 0), -1000 + MMC_EAGAIN);
	CHECK_EQ(look_range(requests[1], 1, 0, 1), MMC_EAGAIN);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK(hub_complete(requests[r], MMC_S_NS));
	CHECK_EQ(look_block(requests[1], 0), 1);
	CHECK_EQ(look_block(requests[1], 1), 0);
	CHECK_EQ(look_block(requests[1], 2), 2);
	CHECK_EQ(look_range(requests[1], 2, 0, BLOCK_BYTES), 0);
	CHECK_EQ(mmc_request_present(requests[1], &present), MMC_EAGAIN);
	CHECK(present == NULL);
	for (uint32_t r = 0; r < RANKS; r++)
		mmc_request_free(requests[r]);
	hub_close();
}

static void nonsense_is_refused(void)
{
	struct mmc_request *request;

	hub_open(&alone);
	request = start(0, true, false);
	CHECK_EQ(look_range(request, RANKS, 0, 1), -MMC_EINVAL);
	CHECK_EQ(look_range(request, 0, 0, BLOCK_BYTES + 1), -MMC_EINVAL);
	CHECK_EQ(look_range(request, 0, BLOCK_BYTES + 1, 0), -MMC_EINVAL);
	CHECK_EQ(look_range(request, 0, 1, UINT64_MAX), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 0") != NULL);
	CHECK_EQ(look_block(request, RANKS), -1000 - MMC_EINVAL);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* After a failure all calls return its error, even of what had landed. */
static void the_error_of_a_failure(void)
{
	struct mmc_request *request;

	hub_open(&alone);
	request = start(0, true, false);
	CHECK_EQ(look_block(request, 0), 0);
	mmc_request_cancel(request);
	CHECK_EQ(look_block(request, 0), -1000 - MMC_ECANCELED);
	CHECK_EQ(look_block(request, 1), -1000 - MMC_ECANCELED);
	CHECK_EQ(look_range(request, 0, 0, 1), -MMC_ECANCELED);
	CHECK_EQ(look_range(request, 2, 0, 1), -MMC_ECANCELED);
	mmc_request_free(request);
	hub_close();
}

/* Nothing of an operation is present while earlier ones keep it from beginning. */
static void one_that_has_not_begun(void)
{
	struct mmc_request *requests[MMC_EPOCHS_ACTIVE_MAX + 1];
	struct mmc_request *last;
	struct mmc_present *present;

	hub_open(&alone);
	for (uint32_t i = 0; i <= MMC_EPOCHS_ACTIVE_MAX; i++)
		requests[i] = start(0, true, true);
	last = requests[MMC_EPOCHS_ACTIVE_MAX];
	CHECK(last->op == NULL);
	CHECK_EQ(look_block(last, 0), -1000 + MMC_EAGAIN);
	CHECK_EQ(look_range(last, 0, 0, 1), MMC_EAGAIN);
	CHECK_EQ(mmc_request_present(last, &present), MMC_EAGAIN);
	mmc_request_tell_blocks(last);
	mmc_request_cancel(requests[0]);
	hub_settle();
	CHECK_EQ(look_block(last, 0), -1000 - MMC_EPOISONED);
	CHECK_EQ(hub[0].engine->ntelling, 0);
	for (uint32_t i = 0; i <= MMC_EPOCHS_ACTIVE_MAX; i++)
		mmc_request_free(requests[i]);
	hub_close();
}

/* The bits may be looked at when request, stream and engine are gone. */
static void bits_outlive_their_request(void)
{
	struct mmc_request *requests[RANKS];
	struct mmc_present *present, *again;
	uint32_t nbits;

	hub_open(&three);
	for (uint32_t r = 0; r < RANKS; r++)
		requests[r] = start(r, true, false);
	CHECK_EQ(mmc_request_present(requests[0], &present), 0);
	CHECK_EQ(mmc_request_present(requests[0], &again), 0);
	CHECK_EQ(nset(present, &nbits), 21);
	CHECK_EQ(nbits, 63);
	mmc_present_free(again);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK(hub_complete(requests[r], MMC_S_NS));
	for (uint32_t r = 0; r < RANKS; r++)
		mmc_request_free(requests[r]);
	/* Later operations leave the memory alone. */
	for (uint32_t r = 0; r < RANKS; r++)
		requests[r] = start(r, true, false);
	CHECK_EQ(nset(present, &nbits), 63);
	hub_settle();
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		mmc_request_free(requests[r]);
	}
	hub_close();
	CHECK_EQ(nset(present, &nbits), 63);
	mmc_present_free(present);
}

/* A stream that is closed early lets go of memory whose bits someone looks at. */
static void bits_outlive_a_stream_in_use(void)
{
	struct mmc_request *request;
	struct mmc_present *present;
	uint32_t nbits;

	hub_open(&alone);
	request = start(0, true, true);
	mmc_request_tell_blocks(request);
	CHECK_EQ(hub[0].engine->ntelling, 1);
	CHECK_EQ(mmc_request_present(request, &present), 0);
	hub_close();
	CHECK_EQ(nset(present, &nbits), 21);
	mmc_present_free(present);
}

/* Whoever waits for the engine's news hears of each block, and of the end, once. */
static void news_of_blocks(void)
{
	struct mmc_request *requests[RANKS];
	uint64_t nended = 0;

	hub_open(&three);
	for (uint32_t r = 0; r < RANKS; r++)
		requests[r] = start(r, true, true);
	mmc_request_tell_blocks(requests[0]);
	CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
	CHECK_EQ(nended, 1);
	CHECK_EQ(look_block(requests[0], 0), 0);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK(hub_complete(requests[r], MMC_S_NS));
	CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
	/* Two blocks may land in one step, and the last one with the end. */
	CHECK(nended >= 2 && nended <= 4);
	CHECK_EQ(hub[0].engine->ntelling, 0);
	mmc_request_tell_blocks(requests[0]);
	CHECK_EQ(hub[0].engine->ntelling, 0);
	for (uint32_t r = 0; r < RANKS; r++)
		mmc_request_free(requests[r]);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(this_ranks_block_is_first), CHECK_TEST(all_at_the_end),
	   CHECK_TEST(nonsense_is_refused), CHECK_TEST(the_error_of_a_failure),
	   CHECK_TEST(one_that_has_not_begun),
	   CHECK_TEST(bits_outlive_their_request),
	   CHECK_TEST(bits_outlive_a_stream_in_use), CHECK_TEST(news_of_blocks))
