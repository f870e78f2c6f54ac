/* SPDX-License-Identifier: BSD-3-Clause */
/* The window finds what the network's queues hold, whatever the size of the blocks. */
#include "check.h"
#include "core/flow/window.h"
#include "support/prng.h"

#define CHUNK_BYTES 1000

/* Feeds the window an operation in which each rank has `nchunks` chunks. */
static void adapt(struct mmc_window *window, uint32_t nchunks, uint32_t nlost,
		  uint32_t nshared, uint64_t rate_bytes_per_s)
{
	const struct mmc_window_sample sample = {
		.window_bytes = window->bytes,
		.chunk_bytes = CHUNK_BYTES,
		.nchunks = nchunks,
		.nlost = nlost,
		.nshared = nshared,
		.rate_bytes_per_s = rate_bytes_per_s,
	};

	mmc_window_adapt(window, &sample);
}

/* Returns the rate that a window achieves, up to that of the link. */
static uint64_t rate_of(const struct mmc_window *window)
{
	return window->bytes < 500000
		       ? UINT64_C(100) * window->bytes * window->bytes
		       : UINT64_C(25000000000000);
}

/* The window grows while that raises the rate, and stays at what a queue holds. */
static void finds_the_queue(void)
{
	for (uint32_t queue = 150000; queue < 1000000; queue += 50000) {
		struct mmc_window window = { .bytes = 100000 };
		unsigned nlossy = 0;

		for (int i = 0; i < 1000; i++) {
			uint32_t over = window.bytes > queue + 100000;
			uint32_t some = window.bytes > queue;

			nlossy += some;
			adapt(&window, 500, 200 * over + 3 * some, 200 * over,
			      rate_of(&window));
		}
		CHECK(window.bytes >= 60000 || queue < 200000);
		CHECK(window.bytes <= queue + 20 * CHUNK_BYTES);
		CHECK(window.bytes <= 560000);
		CHECK(nlossy <= 16);
	}
}

/* Unshared loss hardly shrinks the window; total loss makes it the least. */
static void bears_loss(void)
{
	struct mmc_window window = { .bytes = 400000 };

	for (int i = 0; i < 100; i++)
		adapt(&window, 500, 10, 1, 5);
	CHECK(window.bytes >= 360000);
	for (int i = 0; i < 100; i++)
		adapt(&window, 500, 500, 500, 5);
	CHECK_EQ(window.bytes, CHUNK_BYTES * MMC_WINDOW_CHUNKS_MIN);
	window = (struct mmc_window){ .bytes = UINT32_MAX - 5 };
	adapt(&window, 500, 0, 0, 5);
	CHECK_EQ(window.bytes, UINT32_MAX - 5);
	window.bytes = 0;
	adapt(&window, 500, 0, 0, 5);
	CHECK_EQ(window.bytes, 0);
}

/*
 * A thousandth of the chunks is lost, each on the way to all ranks, in blocks of 1 to
 * 40 chunks. The window is not to blame, and shrinks no further
 * than to leave room for others.
 */
static void small_blocks_bear_loss(void)
{
	for (uint32_t nchunks = 1; nchunks <= 40; nchunks++) {
		struct mmc_window window = { .bytes = MMC_WINDOW_BYTES };
		struct mmc_prng prng = { .state = nchunks };

		for (int i = 0; i < 1000; i++) {
			uint32_t nlost = 0;

			for (uint32_t c = 0; c < nchunks; c++)
				nlost += mmc_prng_below(&prng, 1000) == 0;
			adapt(&window, nchunks, nlost, nlost, 5);
		}
		CHECK(window.bytes >= MMC_WINDOW_SHARED_BYTES);
	}
}

/* After bursts of loss the window grows back, whatever the size of blocks. */
static void grows_back(void)
{
	const uint32_t sizes[] = { 1, 5, 10, 16, 64, 500, 3000 };

	for (unsigned s = 0; s < 7; s++)
		for (uint32_t nbursts = 1; nbursts <= 10; nbursts++) {
			struct mmc_window window = { .bytes =
							     MMC_WINDOW_BYTES };
			uint32_t nchunks = sizes[s];
			int noperations = 0;

			while (window.bytes > MMC_WINDOW_BYTES >> nbursts &&
			       window.bytes > CHUNK_BYTES * 64)
				adapt(&window, nchunks, nchunks, nchunks, 5);
			while (window.bytes < MMC_WINDOW_BYTES / 10 * 9 &&
			       noperations < 20000) {
				adapt(&window, nchunks, 0, 0, 5);
				noperations++;
			}
			CHECK(noperations <= 200 || nchunks < 10);
			CHECK(noperations < 200 * 64);
		}
}

/* Single losses show that others share a queue: the window leaves them room. */
static void leaves_room_for_others(void)
{
	struct mmc_window window = { .bytes = MMC_WINDOW_BYTES };

	adapt(&window, 2000, 1, 0, 5);
	CHECK_EQ(window.bytes, MMC_WINDOW_SHARED_BYTES);
	for (int i = 0; i < 100; i++) {
		adapt(&window, 2000, i % 3 == 0, 0, 5);
		CHECK(window.bytes >= MMC_WINDOW_SHARED_BYTES);
		CHECK(window.bytes <=
		      MMC_WINDOW_SHARED_BYTES + 40 * CHUNK_BYTES);
	}
	for (int i = 0; i < 200; i++)
		adapt(&window, 2000, 0, 0, 5);
	CHECK(window.bytes >= MMC_WINDOW_BYTES - 20 * CHUNK_BYTES);
}

/* A window that has learnt not to grow. */
static const struct mmc_window settled = {
	.bytes = MMC_WINDOW_BYTES,
	.ceiling_bytes = MMC_WINDOW_BYTES,
	.patience = UINT32_MAX,
};

/* Feeds a window an operation of `total_bytes` that lost `nlost` of 1,000 chunks. */
static void run(struct mmc_window *window, uint64_t total_bytes, uint32_t nlost,
		uint32_t wait_percent)
{
	uint32_t agreed_bytes = mmc_window_bytes(window);
	const struct mmc_window_sample sample = {
		.window_bytes = agreed_bytes,
		.chunk_bytes = CHUNK_BYTES,
		.nchunks = 1000,
		.nlost = nlost,
		.rate_bytes_per_s = 5,
	};

	mmc_window_learn(window, &sample);
	mmc_window_note_wait(window, agreed_bytes, total_bytes, wait_percent);
}

/*
 * Where processors are what ranks wait for, the window doubles until it no longer
 * limits operations, and what was learnt of queues stays.
 */
static void widens_while_processors_lack(void)
{
	struct mmc_window window = settled;
	struct mmc_window other = settled;
	uint64_t total_bytes = 8 * MMC_WINDOW_BYTES;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(mmc_window_bytes(&window), MMC_WINDOW_BYTES << i);
		run(&window, total_bytes, 0, MMC_WINDOW_WIDEN_PERCENT);
	}
	for (int i = 0; i < 100; i++)
		run(&window, total_bytes, 0, MMC_WINDOW_WIDEN_PERCENT);
	CHECK_EQ(mmc_window_bytes(&window), total_bytes);
	CHECK_EQ(window.bytes, MMC_WINDOW_BYTES);
	for (int i = 0; i < 10; i++)
		run(&window, total_bytes, 0, MMC_WINDOW_NARROW_PERCENT);
	CHECK_EQ(mmc_window_bytes(&window), total_bytes);
	for (int i = 0; i < 3; i++)
		run(&window, total_bytes, 0, MMC_WINDOW_NARROW_PERCENT - 1);
	CHECK_EQ(mmc_window_bytes(&window), MMC_WINDOW_BYTES);
	for (int i = 0; i < 100; i++)
		run(&other, UINT64_MAX, 0, 100);
	CHECK_EQ(mmc_window_bytes(&other),
		 MMC_WINDOW_BYTES << MMC_WINDOW_WIDENING_MAX);
}

/* A window that has lost chunks at some width is never that wide again. */
static void is_not_widened_to_where_it_lost(void)
{
	for (uint32_t lossy = 1; lossy <= MMC_WINDOW_WIDENING_MAX; lossy++) {
		struct mmc_window window = settled;
		unsigned nlossy = 0;

		for (int i = 0; i < 1000; i++) {
			bool loses = window.widening >= lossy;

			nlossy += loses;
			run(&window, UINT64_MAX, 10 * loses,
			    MMC_WINDOW_WIDEN_PERCENT);
		}
		CHECK_EQ(nlossy, 1);
		CHECK_EQ(window.widening, lossy - 1);
	}
}

/* A rank does not run ahead of what all have agreed on. */
static void follows_the_agreement(void)
{
	struct mmc_window window = settled;
	struct mmc_window none = { .bytes = 0 };

	for (int i = 0; i < 10; i++)
		mmc_window_note_wait(&window, MMC_WINDOW_BYTES, UINT64_MAX,
				     100);
	CHECK_EQ(window.widening, 1);
	for (int i = 0; i < 10; i++)
		mmc_window_note_wait(&none, MMC_WINDOW_BYTES, UINT64_MAX, 100);
	CHECK_EQ(mmc_window_bytes(&none), 0);
	window.bytes = UINT32_MAX - 5;
	CHECK_EQ(mmc_window_bytes(&window), UINT32_MAX);
}

CHECK_MAIN(CHECK_TEST(widens_while_processors_lack),
	   CHECK_TEST(is_not_widened_to_where_it_lost),
	   CHECK_TEST(follows_the_agreement),
	   CHECK_TEST(leaves_room_for_others), CHECK_TEST(finds_the_queue),
	   CHECK_TEST(bears_loss), CHECK_TEST(small_blocks_bear_loss),
	   CHECK_TEST(grows_back))
