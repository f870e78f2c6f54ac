/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions on bits and numbers agree with slow versions or with their definitions.
 */
#include "check.h"
#include "support/bits.h"
#include "support/prng.h"

static uint32_t slow_lowest_bit(uint64_t word)
{
	uint32_t bit = 0;

	while (!((word >> bit) & 1))
		bit++;
	return bit;
}

static uint32_t slow_set_bits(uint64_t word)
{
	uint32_t nset = 0;

	for (uint32_t bit = 0; bit < 64; bit++)
		nset += (uint32_t)(word >> bit) & 1;
	return nset;
}

static void check_word(uint64_t word)
{
	CHECK_EQ(mmc_set_bits(word), slow_set_bits(word));
	if (word != 0)
		CHECK_EQ(mmc_lowest_bit(word), slow_lowest_bit(word));
}

static void words(void)
{
	struct mmc_prng prng = { .state = 1 };

	for (uint64_t word = 0; word < 1 << 16; word++) {
		check_word(word);
		check_word(word << 48);
		check_word(~word);
	}
	for (uint32_t a = 0; a < 64; a++)
		for (uint32_t b = 0; b < 64; b++)
			check_word(UINT64_C(1) << a | UINT64_C(1) << b);
	for (int i = 0; i < 100000; i++)
		check_word(mmc_prng_next(&prng) & mmc_prng_next(&prng));
}

static void log2_ceil(void)
{
	CHECK_EQ(mmc_log2_ceil(0), 0);
	CHECK_EQ(mmc_log2_ceil(1), 0);
	for (uint32_t n = 2; n < 1 << 16; n++) {
		uint32_t k = mmc_log2_ceil(n);

		CHECK(UINT64_C(1) << k >= n);
		CHECK(UINT64_C(1) << (k - 1) < n);
	}
	for (uint32_t k = 2; k < 32; k++) {
		CHECK_EQ(mmc_log2_ceil((UINT32_C(1) << k) - 1), k);
		CHECK_EQ(mmc_log2_ceil(UINT32_C(1) << k), k);
		CHECK_EQ(mmc_log2_ceil((UINT32_C(1) << k) + 1), k + 1);
	}
	CHECK_EQ(mmc_log2_ceil(UINT32_MAX), 32);
}

static void min_max(void)
{
	CHECK_EQ(mmc_min_u32(1, UINT32_MAX), 1);
	CHECK_EQ(mmc_min_u32(UINT32_MAX, 1), 1);
	CHECK_EQ(mmc_max_u32(1, UINT32_MAX), UINT32_MAX);
	CHECK_EQ(mmc_max_u32(UINT32_MAX, 1), UINT32_MAX);
	CHECK_EQ(mmc_min_u64(UINT64_MAX, UINT64_C(1) << 32), UINT64_C(1) << 32);
	CHECK_EQ(mmc_max_u64(UINT64_C(1) << 32, 3), UINT64_C(1) << 32);
}

/* Of two epochs less than 2^31 apart, only the newer one is after the other. */
static void epochs_wrap(void)
{
	static const uint32_t distances[] = { 1, 2, 1000, INT32_MAX };
	static const uint32_t starts[] = { 0,	       1,
					   INT32_MAX,  (uint32_t)INT32_MAX + 1,
					   UINT32_MAX, UINT32_MAX - 999 };

	for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		uint32_t from = starts[s];

		CHECK(!mmc_epoch_after(from, from));
		for (unsigned d = 0; d < 4; d++) {
			uint32_t to = from + distances[d];

			CHECK(mmc_epoch_after(to, from));
			CHECK(!mmc_epoch_after(from, to));
		}
	}
}

CHECK_MAIN(CHECK_TEST(words), CHECK_TEST(log2_ceil), CHECK_TEST(min_max),
	   CHECK_TEST(epochs_wrap))
