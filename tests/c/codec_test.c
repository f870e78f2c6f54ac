/* SPDX-License-Identifier: BSD-3-Clause */
/* Our codec computes what a combination is defined to be. */
#include "code/codec.h"
#include "combination.h"
#include "field_slow.h"

#define CASES 300

static bool check_sum(const struct drawn *drawn, unsigned row)
{
	const struct mmc_combination *combination = &drawn->combination;
	const uint8_t *coefficients =
		&drawn->coefficients[(size_t)row * combination->ncolumns];

	for (size_t at = 0; at < combination->nbytes; at++) {
		uint8_t sum = 0;

		for (unsigned i = 0; i < combination->ncolumns; i++)
			sum ^= slow_multiply(coefficients[i],
					     drawn->sources[i][at]);
		if (!CHECK_EQ(drawn->sums[row][at], sum))
			return false;
	}
	return true;
}

static void random_combinations(void)
{
	struct mmc_prng prng = { check_seed() };
	static struct drawn drawn;

	for (unsigned i = 0; i < CASES; i++) {
		drawn.skipped = i % 3;
		drawn.combination = (struct mmc_combination){
			.nrows = 1 + (unsigned)mmc_prng_below(&prng, 5),
			.ncolumns = 1 + (unsigned)mmc_prng_below(&prng, 9),
			.nbytes = mmc_prng_below(&prng, 90),
		};
		draw(&drawn, &prng, 256);
		mmc_codec_plain.combine(&drawn.combination);
		for (unsigned row = 0; row < drawn.combination.nrows; row++)
			if (!check_sum(&drawn, row))
				break;
		drawn_free(&drawn);
	}
}

static void a_codec_is_chosen(void)
{
	const struct mmc_codec *codec = mmc_codec_choose();

	CHECK(codec != NULL && codec->name[0] != '\0');
	CHECK(mmc_codec_choose() == codec);
}

CHECK_MAIN(CHECK_TEST(random_combinations), CHECK_TEST(a_codec_is_chosen))
