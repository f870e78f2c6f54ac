/* SPDX-License-Identifier: BSD-3-Clause */
/* Parity is what it is defined to be, and every choice of k chunks gives all data. */
#include "code_group.h"
#include "field_slow.h"

#define CHUNK_BYTES 11
#define NDATA_MAX 6
#define NPARITY_MAX 4
#define CASES 60

static void coefficients(void)
{
	for (unsigned column = 0; column < MMC_CODE_CHUNKS_MAX; column++)
		for (unsigned row = 0; row + column < MMC_CODE_CHUNKS_MAX;
		     row++) {
			uint8_t found = mmc_code_coefficient(row, column);

			if (row == 0)
				CHECK_EQ(found, 1);
			if (!CHECK_EQ(slow_multiply(found,
						    (uint8_t)(255 ^ column ^
							      row)),
				      255 ^ column))
				return;
		}
}

/* A shorter last chunk counts as if zeros followed. */
static bool check_parity(const struct coded *coded, unsigned row)
{
	for (size_t at = 0; at < coded->group.chunk_bytes; at++) {
		uint8_t sum = 0;

		for (unsigned i = 0; i < coded->group.ndata; i++)
			if (at < coded_bytes(coded, i))
				sum ^= slow_multiply(mmc_code_coefficient(row,
									  i),
						     coded->data[i][at]);
		if (!CHECK_EQ(coded->parity[row][at], sum))
			return false;
	}
	return true;
}

static void check_all_parity(const struct coded *coded)
{
	for (unsigned row = 0; row < coded->nparity; row++)
		if (!check_parity(coded, row))
			return;
}

/* Writes the numbers of the bits that are set, and returns how many there are. */
static unsigned list_bits(unsigned set, uint8_t *numbers)
{
	unsigned count = 0;

	for (unsigned bit = 0; bit < 8; bit++)
		if (set >> bit & 1)
			numbers[count++] = (uint8_t)bit;
	return count;
}

/* Loses every set of data chunks, and mends it by every set of as many rows. */
static unsigned check_all_losses(const struct coded *coded)
{
	unsigned npatterns = 0;

	for (unsigned lost = 1; lost < 1u << coded->group.ndata; lost++)
		for (unsigned set = 1; set < 1u << coded->nparity; set++) {
			uint8_t columns[8];
			uint8_t rows[8];
			unsigned count = list_bits(lost, columns);

			if (list_bits(set, rows) != count)
				continue;
			npatterns++;
			CHECK(coded_mends(coded, &mmc_codec_plain, columns,
					  rows, count));
		}
	return npatterns;
}

static unsigned choose(unsigned n, unsigned k)
{
	return k == 0 ? 1 : choose(n - 1, k - 1) * n / k;
}

static void small_codes(void)
{
	struct mmc_prng prng = { check_seed() };
	static struct coded coded;

	for (unsigned k = 1; k <= NDATA_MAX; k++)
		for (unsigned m = 1; m <= NPARITY_MAX; m++)
			for (unsigned last = 1; last <= CHUNK_BYTES;
			     last += 5) {
				coded.nparity = m;
				coded.group = (struct mmc_code_group){
					.ndata = k,
					.chunk_bytes = CHUNK_BYTES,
					.last_bytes = last,
				};
				coded_draw(&coded, &prng, &mmc_codec_plain);
				check_all_parity(&coded);
				CHECK_EQ(check_all_losses(&coded),
					 choose(k + m, k) - 1);
				coded_free(&coded);
			}
}

/* Rows may be in any order. */
static void reverse(uint8_t *numbers, unsigned count)
{
	for (unsigned i = 0; i < count / 2; i++) {
		uint8_t number = numbers[i];

		numbers[i] = numbers[count - 1 - i];
		numbers[count - 1 - i] = number;
	}
}

static void check_losses(const struct coded *coded, struct mmc_prng *prng)
{
	unsigned k = coded->group.ndata;
	unsigned limit = k < coded->nparity ? k : coded->nparity;

	for (unsigned i = 0; i < 4; i++) {
		/* One in four times as many as can be mended. */
		unsigned count =
			i == 0 ? limit
			       : 1 + (unsigned)mmc_prng_below(prng, limit);
		uint8_t columns[MMC_CODE_CHUNKS_MAX];
		uint8_t rows[MMC_CODE_CHUNKS_MAX];

		draw_some(prng, k, count, columns);
		draw_some(prng, coded->nparity, count, rows);
		if (i % 2 == 1)
			reverse(rows, count);
		CHECK(coded_mends(coded, &mmc_codec_plain, columns, rows,
				  count));
	}
}

static void check_large(struct mmc_prng *prng, unsigned k, unsigned m)
{
	static struct coded coded;
	size_t chunk_bytes = 1 + mmc_prng_below(prng, 70);

	coded.nparity = m;
	coded.group = (struct mmc_code_group){
		.ndata = k,
		.chunk_bytes = chunk_bytes,
		.last_bytes = 1 + mmc_prng_below(prng, chunk_bytes),
	};
	coded_draw(&coded, prng, &mmc_codec_plain);
	check_losses(&coded, prng);
	coded_free(&coded);
}

static void large_codes(void)
{
	struct mmc_prng prng = { check_seed() };

	check_large(&prng, 127, 128);
	check_large(&prng, 128, 127);
	check_large(&prng, 254, 1);
	check_large(&prng, 1, 254);
	for (unsigned i = 0; i < CASES; i++) {
		unsigned k = 1 + (unsigned)mmc_prng_below(&prng, 254);

		check_large(&prng, k,
			    1 + (unsigned)mmc_prng_below(&prng, 255 - k));
	}
}

/* Rows that are computed later are the same as if all had been computed at once. */
static void rows_on_request(void)
{
	struct mmc_prng prng = { check_seed() };
	uint8_t chunks[3][CHUNK_BYTES];
	uint8_t *parity[] = { chunks[0], chunks[1], chunks[2] };
	static struct coded coded;
	const struct mmc_code_rows later = { .first = 5,
					     .count = 3,
					     .parity = parity };

	coded.nparity = 8;
	coded.group = (struct mmc_code_group){ .ndata = 9,
					       .chunk_bytes = CHUNK_BYTES,
					       .last_bytes = 4 };
	coded_draw(&coded, &prng, &mmc_codec_plain);
	mmc_code_encode(&mmc_codec_plain, &coded.group, &later);
	for (unsigned i = 0; i < 3; i++)
		CHECK_BYTES(chunks[i], coded.parity[5 + i], CHUNK_BYTES);
	coded_free(&coded);
}

CHECK_MAIN(CHECK_TEST(coefficients), CHECK_TEST(small_codes),
	   CHECK_TEST(large_codes), CHECK_TEST(rows_on_request))
