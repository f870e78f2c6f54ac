/* SPDX-License-Identifier: BSD-3-Clause */
/* What other ranks may ask for: each chunk often enough, and never without end. */
#include "core/repair/budget.h"

#include "check.h"

#define NRANKS 3
#define NCHUNKS 1000

static struct mmc_budget budget;
static uint64_t memory[NRANKS];

static void begin(uint64_t now_ns)
{
	memset(memory, 0xff, sizeof(memory));
	CHECK_EQ(mmc_budget_bytes(NRANKS), sizeof(memory));
	mmc_budget_init(&budget, (uint8_t *)memory, NRANKS, now_ns);
}

/* Returns how many chunks are answered of `times` requests for all of them. */
static uint64_t ask(uint32_t peer, uint32_t nchunks, uint32_t times,
		    uint64_t now_ns)
{
	uint64_t ntaken = 0;

	for (uint32_t i = 0; i < times; i++)
		ntaken += mmc_budget_take(&budget, peer, nchunks, nchunks,
					  now_ns);
	return ntaken;
}

/* Requests without end are answered so often, by whatever NAKs they come. */
static void it_is_bounded(void)
{
	begin(5);
	CHECK_EQ(ask(1, NCHUNKS, 100000, 5), MMC_BUDGET_TIMES * NCHUNKS);
	CHECK_EQ(ask(1, NCHUNKS, 1000, 5 + MMC_BUDGET_NS - 1), 0);
	CHECK_EQ(ask(1, NCHUNKS, 1000, 5 + MMC_BUDGET_NS), NCHUNKS);
	CHECK_EQ(ask(1, NCHUNKS, 1000, 5 + 4 * MMC_BUDGET_NS), 3 * NCHUNKS);
}

/* A rank that asks for too much takes nothing from another. */
static void ranks_have_their_own(void)
{
	begin(0);
	CHECK_EQ(ask(1, NCHUNKS, 1000, 0), MMC_BUDGET_TIMES * NCHUNKS);
	CHECK_EQ(ask(2, NCHUNKS, 1, 0), NCHUNKS);
}

/* The last request is answered as far as the budget goes. */
static void a_part_is_answered(void)
{
	begin(0);
	CHECK_EQ(ask(0, NCHUNKS, MMC_BUDGET_TIMES - 1, 0),
		 (MMC_BUDGET_TIMES - 1) * NCHUNKS);
	CHECK_EQ(mmc_budget_take(&budget, 0, NCHUNKS - 1, NCHUNKS, 0),
		 NCHUNKS - 1);
	CHECK_EQ(mmc_budget_take(&budget, 0, NCHUNKS, NCHUNKS, 0), 1);
}

/* A rank asks for the only chunk of a block again each time that others arrive. */
static void few_chunks_count_as_more(void)
{
	begin(0);
	CHECK_EQ(ask(0, 1, 1000000, 0),
		 MMC_BUDGET_TIMES * MMC_BUDGET_CHUNKS_MIN);
}

/*
 * A rank that repeats its request for all chunks as PROTOCOL.md says, in intervals that
 * double from 200 us to 20 ms, is always answered, even if it gets nothing for a minute.
 */
static void a_true_loss_is_always_served(void)
{
	uint64_t interval_ns = 200 * MMC_US_NS;
	uint64_t now_ns = 0;

	begin(0);
	while (now_ns < 60 * MMC_S_NS) {
		CHECK_EQ(mmc_budget_take(&budget, 0, NCHUNKS, NCHUNKS, now_ns),
			 NCHUNKS);
		now_ns += interval_ns;
		interval_ns = 2 * interval_ns < MMC_BUDGET_NS ? 2 * interval_ns
							      : MMC_BUDGET_NS;
	}
}

CHECK_MAIN(CHECK_TEST(it_is_bounded), CHECK_TEST(ranks_have_their_own),
	   CHECK_TEST(a_part_is_answered), CHECK_TEST(few_chunks_count_as_more),
	   CHECK_TEST(a_true_loss_is_always_served))
