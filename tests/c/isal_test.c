/* SPDX-License-Identifier: BSD-3-Clause */
/* ISA-L computes the same bytes as our own codec. */
#include <mpimcast/mmc.h>

#include "code/isal.h"
#include "code_group.h"
#include "combination.h"

#define CASES 400

/* Computes a combination by both codecs. */
static void check_codecs(struct drawn *drawn)
{
	struct mmc_combination *combination = &drawn->combination;
	uint8_t *expected[COMBINATION_SIDE_MAX];

	for (unsigned i = 0; i < combination->nrows; i++)
		expected[i] = malloc(combination->nbytes);
	mmc_codec_isal.combine(combination);
	combination->sums = expected;
	mmc_codec_plain.combine(combination);
	for (unsigned i = 0; i < combination->nrows; i++) {
		CHECK_BYTES(drawn->sums[i], expected[i], combination->nbytes);
		free(expected[i]);
	}
}

static void check_drawn(struct mmc_prng *prng, unsigned nrows_max,
			unsigned limit)
{
	static struct drawn drawn;
	unsigned ncolumns = 1 + (unsigned)mmc_prng_below(prng, 40);

	drawn.skipped = mmc_prng_below(prng, 2) * mmc_prng_below(prng, 64);
	drawn.combination = (struct mmc_combination){
		.nrows = 1 + (unsigned)mmc_prng_below(prng, nrows_max),
		.ncolumns = ncolumns,
		.nbytes = 1 + mmc_prng_below(prng, 3000),
	};
	draw(&drawn, prng, limit);
	check_codecs(&drawn);
	drawn_free(&drawn);
}

static void random_combinations(void)
{
	struct mmc_prng prng = { check_seed() };

	for (unsigned i = 0; i < CASES; i++)
		check_drawn(&prng, 12, 256);
}

/* The library has a function of its own for sums of which all coefficients are 1. */
static void exclusive_or(void)
{
	struct mmc_prng prng = { check_seed() };

	for (unsigned i = 0; i < CASES; i++)
		check_drawn(&prng, 1, 2);
}

/* As many coefficients as a combination may have, of the greatest numbers of rows or columns. */
static void greatest(void)
{
	struct mmc_prng prng = { check_seed() };
	static struct drawn drawn;

	for (unsigned side = 8; side <= 255; side += 247) {
		drawn.skipped = 1;
		drawn.combination = (struct mmc_combination){
			.nrows = MMC_COEFFICIENTS_MAX / side > 255
					 ? 255
					 : MMC_COEFFICIENTS_MAX / side,
			.ncolumns = side,
			.nbytes = 1456,
		};
		draw(&drawn, &prng, 256);
		check_codecs(&drawn);
		drawn_free(&drawn);
	}
}

/* Tables are those of the latest coefficients: the same ones, others, and the first again. */
static void coefficients_alternate(void)
{
	struct mmc_prng prng = { check_seed() };
	static struct drawn pair[2];

	for (unsigned i = 0; i < 2; i++) {
		pair[i].combination = (struct mmc_combination){ .nrows = 2,
								.ncolumns = 4,
								.nbytes = 500 };
		draw(&pair[i], &prng, 256);
	}
	for (unsigned i = 0; i < 20; i++)
		check_codecs(&pair[mmc_prng_below(&prng, 2)]);
	for (unsigned i = 0; i < 2; i++)
		drawn_free(&pair[i]);
}

/* What one codec has encoded the other mends, with tails of groups as well. */
static void groups(void)
{
	struct mmc_prng prng = { check_seed() };
	static struct coded coded;

	for (unsigned i = 0; i < 60; i++) {
		unsigned k = 1 + (unsigned)mmc_prng_below(&prng, 60);
		unsigned m = 1 + (unsigned)mmc_prng_below(&prng, 20);
		unsigned count =
			1 + (unsigned)mmc_prng_below(&prng, k < m ? k : m);
		size_t chunk_bytes = 1 + mmc_prng_below(&prng, 1500);
		uint8_t columns[MMC_CODE_CHUNKS_MAX];
		uint8_t rows[MMC_CODE_CHUNKS_MAX];

		coded.nparity = m;
		coded.group = (struct mmc_code_group){
			.ndata = k,
			.chunk_bytes = chunk_bytes,
			.last_bytes = 1 + mmc_prng_below(&prng, chunk_bytes),
		};
		coded_draw(&coded, &prng,
			   i % 2 == 0 ? &mmc_codec_isal : &mmc_codec_plain);
		draw_some(&prng, k, count, columns);
		draw_some(&prng, m, count, rows);
		CHECK(coded_mends(
			&coded, i % 2 == 0 ? &mmc_codec_plain : &mmc_codec_isal,
			columns, rows, count));
		coded_free(&coded);
	}
}

static void it_is_chosen(void)
{
	CHECK(mmc_codec_choose() == &mmc_codec_isal);
	CHECK_EQ(mmc_code_library_open(), 0);
}

static int run(int argc, char **argv)
{
	static const struct check_test tests[] = {
		CHECK_TEST(random_combinations),
		CHECK_TEST(exclusive_or),
		CHECK_TEST(greatest),
		CHECK_TEST(coefficients_alternate),
		CHECK_TEST(groups),
		CHECK_TEST(it_is_chosen),
	};

	return check_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}

/* Without the library the program is skipped, but in CI, which installs it, it fails. */
int main(int argc, char **argv)
{
	const char *ci = getenv("CI");

	if (mmc_code_library_open() == 0)
		return run(argc, argv);
	printf("skipped: %s: apt install libisal2\n", mmc_last_error());
	return ci != NULL && strcmp(ci, "true") == 0 ? 1 : 77;
}
