/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of GF(256) agree with multiplication by shifts and subtractions. */
#include "check.h"
#include "code/field.h"
#include "field_slow.h"
#include "support/prng.h"

#define NBYTES_MAX 40

static void products(void)
{
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++)
			if (!CHECK_EQ(mmc_field_multiply((uint8_t)a,
							 (uint8_t)b),
				      slow_multiply((uint8_t)a, (uint8_t)b)))
				return;
}

/* Powers of 2 are all elements but 0, and a logarithm tells which one an element is. */
static void logarithms(void)
{
	uint8_t power = 1;

	for (unsigned i = 0; i < MMC_FIELD_ORDER; i++) {
		CHECK_EQ(mmc_field_power(i), power);
		CHECK_EQ(mmc_field_power(i + MMC_FIELD_ORDER), power);
		CHECK_EQ(mmc_field_log(power), i);
		power = slow_multiply(power, 2);
	}
	CHECK_EQ(power, 1);
}

/* Adds `nbytes` at odd and even addresses; memory is exact, so ASan sees each overrun. */
static void check_add(struct mmc_prng *prng, uint8_t coefficient, size_t nbytes,
		      size_t skipped)
{
	uint8_t *source = calloc(1, NBYTES_MAX);
	uint8_t *sum = malloc(skipped + nbytes + 1);
	uint8_t expected[NBYTES_MAX];

	for (size_t i = 0; i < nbytes; i++) {
		source[i] = (uint8_t)mmc_prng_next(prng);
		sum[skipped + i] = (uint8_t)mmc_prng_next(prng);
		expected[i] = sum[skipped + i] ^
			      slow_multiply(coefficient, source[i]);
	}
	sum[skipped + nbytes] = 0x5a;
	mmc_field_add(coefficient, source, nbytes, sum + skipped);
	CHECK_BYTES(sum + skipped, expected, nbytes);
	CHECK_EQ(sum[skipped + nbytes], 0x5a);
	free(source);
	free(sum);
}

static void sums(void)
{
	struct mmc_prng prng = { check_seed() };

	for (unsigned coefficient = 0; coefficient < 256; coefficient++)
		for (size_t nbytes = 0; nbytes <= NBYTES_MAX; nbytes++)
			check_add(&prng, (uint8_t)coefficient, nbytes,
				  nbytes % 3);
}

CHECK_MAIN(CHECK_TEST(products), CHECK_TEST(logarithms), CHECK_TEST(sums))
