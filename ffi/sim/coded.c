/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpimcast/sim.h>

#include "support/bits.h"
#include "support/prng.h"

/* Returns true once in `n` times. */
static bool one_in(struct mmc_prng *prng, uint64_t n)
{
	return mmc_prng_below(prng, n) == 0;
}

/* Draws a number below 2^bits_max, of which small ones are as frequent as large ones. */
static uint32_t scaled(struct mmc_prng *prng, unsigned bits_max)
{
	return (uint32_t)mmc_prng_below(
		prng, UINT64_C(1) << mmc_prng_below(prng, bits_max + 1));
}

void mmc_sim_coded_case(uint64_t seed, struct mmc_sim_spec *spec)
{
	struct mmc_prng prng = { .state = ~seed };

	mmc_sim_case(seed, spec);
	spec->zero_copy = 0;
	spec->code_data = 1 + scaled(&prng, 6);
	if (!one_in(&prng, 4))
		spec->code_parity =
			1 + (uint32_t)mmc_prng_below(
				    &prng, mmc_min_u32(8, spec->code_data));
	if (!one_in(&prng, 4))
		spec->loss_ppm = scaled(&prng, 18);
	if (one_in(&prng, 2))
		spec->block_bytes *= 1 + mmc_prng_below(&prng, 8);
	spec->code_auto = one_in(&prng, 3);
}
