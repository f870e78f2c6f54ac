/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A seeded pseudo-random generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014). The
 * same seed gives the same numbers on every machine: any run can be replayed.
 */
#ifndef MMC_SUPPORT_PRNG_H
#define MMC_SUPPORT_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct mmc_prng {
	uint64_t state;
};

/* Returns the next 64 bits, each 0 or 1 with equal probability. */
static inline uint64_t mmc_prng_next(struct mmc_prng *prng)
{
	uint64_t z = prng->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/*
 * Returns a number in [0, bound), or 0 if `bound` is 0. The bias towards small numbers
 * is below bound / 2^64.
 */
static inline uint64_t mmc_prng_below(struct mmc_prng *prng, uint64_t bound)
{
	return bound == 0 ? 0 : mmc_prng_next(prng) % bound;
}

/* Returns true with a probability of `parts_per_2_32` / 2^32. */
static inline bool mmc_prng_chance(struct mmc_prng *prng,
				   uint64_t parts_per_2_32)
{
	return (mmc_prng_next(prng) >> 32) < parts_per_2_32;
}

#endif
