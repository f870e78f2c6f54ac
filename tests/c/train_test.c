/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains are short where the link is slow, and as long as they can be where it is fast. */
#include "check.h"
#include "core/flow/train.h"

#define CHUNK_BYTES 1456
#define TRAIN_CHUNKS 44

static uint32_t train_of(uint64_t rate_bytes_per_s, uint32_t train_chunks)
{
	struct mmc_path path;

	mmc_path_init(&path);
	mmc_path_set_rate(&path, rate_bytes_per_s);
	return mmc_train_chunks(&path, train_chunks, CHUNK_BYTES);
}

/* Before a rate was measured, and without trains, a batch is what it has always been. */
static void the_usual_batch(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	CHECK_EQ(mmc_train_chunks(&path, TRAIN_CHUNKS, CHUNK_BYTES),
		 MMC_BATCH_CHUNKS_MAX);
	CHECK_EQ(train_of(1000, 0), MMC_BATCH_CHUNKS_MAX);
	CHECK_EQ(train_of(UINT64_MAX, 0), MMC_BATCH_CHUNKS_MAX);
}

/* A link of 100 Mbit/s carries 17 chunks in two milliseconds. */
static void the_rate_decides(void)
{
	CHECK_EQ(train_of(0, TRAIN_CHUNKS), MMC_BATCH_CHUNKS_MIN);
	CHECK_EQ(train_of(1250000, TRAIN_CHUNKS), MMC_BATCH_CHUNKS_MIN);
	CHECK_EQ(train_of(12500000, TRAIN_CHUNKS), 17);
	CHECK_EQ(train_of(25000000, TRAIN_CHUNKS), 34);
	CHECK_EQ(train_of(125000000, TRAIN_CHUNKS), TRAIN_CHUNKS);
	CHECK_EQ(train_of(UINT64_MAX, TRAIN_CHUNKS), TRAIN_CHUNKS);
}

/* The train grows with the rate, holds the link no longer than it may, and is bounded. */
static void bounds(void)
{
	for (uint32_t most = 1; most <= MMC_BATCH_CHUNKS_WIDE; most++) {
		uint32_t bound = mmc_max_u32(most, MMC_BATCH_CHUNKS_MAX);
		uint32_t before = 0;

		for (uint64_t rate = 1000; rate < UINT64_C(1) << 40;
		     rate += 1 + rate / 3) {
			uint32_t train = train_of(rate, most);
			uint64_t time_ns =
				(uint64_t)train * CHUNK_BYTES * MMC_S_NS / rate;

			CHECK(train >= before);
			CHECK(train >= MMC_BATCH_CHUNKS_MIN);
			CHECK(train <= bound);
			CHECK(train == MMC_BATCH_CHUNKS_MIN ||
			      time_ns <= MMC_TRAIN_NS);
			before = train;
		}
		CHECK_EQ(before, bound);
	}
}

CHECK_MAIN(CHECK_TEST(the_usual_batch), CHECK_TEST(the_rate_decides),
	   CHECK_TEST(bounds))
