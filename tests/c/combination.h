/* SPDX-License-Identifier: BSD-3-Clause */
/* Random linear combinations, on which codecs are to agree. */
#ifndef MMC_TESTS_COMBINATION_H
#define MMC_TESTS_COMBINATION_H

#include "check.h"
#include "code/codec.h"
#include "support/prng.h"

#define COMBINATION_SIDE_MAX 255

/* Sources and sums, each in exact memory of its own, which begins at `skipped`. */
struct drawn {
	struct mmc_combination combination;
	size_t skipped;
	uint8_t coefficients[MMC_COEFFICIENTS_MAX];
	uint8_t *sources[COMBINATION_SIDE_MAX];
	uint8_t *sums[COMBINATION_SIDE_MAX];
};

static inline uint8_t *drawn_chunk(size_t skipped, size_t nbytes)
{
	uint8_t *memory = aligned_alloc(64, (skipped + nbytes + 63) / 64 * 64);

	return memory + skipped;
}

/* Draws sources, and coefficients that are below `limit`, but not 0 if that is 2. */
static inline void draw(struct drawn *drawn, struct mmc_prng *prng,
			unsigned limit)
{
	struct mmc_combination *combination = &drawn->combination;
	size_t count = (size_t)combination->nrows * combination->ncolumns;

	for (size_t i = 0; i < count; i++)
		drawn->coefficients[i] =
			limit == 2 ? 1 : (uint8_t)mmc_prng_below(prng, limit);
	for (unsigned i = 0; i < combination->ncolumns; i++) {
		drawn->sources[i] =
			drawn_chunk(drawn->skipped, combination->nbytes);
		for (size_t at = 0; at < combination->nbytes; at++)
			drawn->sources[i][at] = (uint8_t)mmc_prng_next(prng);
	}
	for (unsigned i = 0; i < combination->nrows; i++)
		drawn->sums[i] =
			drawn_chunk(drawn->skipped, combination->nbytes);
	combination->coefficients = drawn->coefficients;
	combination->sources = (const uint8_t *const *)drawn->sources;
	combination->sums = drawn->sums;
}

static inline void drawn_free(struct drawn *drawn)
{
	for (unsigned i = 0; i < drawn->combination.ncolumns; i++)
		free(drawn->sources[i] - drawn->skipped);
	for (unsigned i = 0; i < drawn->combination.nrows; i++)
		free(drawn->sums[i] - drawn->skipped);
}

#endif
