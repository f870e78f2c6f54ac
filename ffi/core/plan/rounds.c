/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/rounds.h"

#include "support/bits.h"

uint32_t mmc_rounds_blocks(uint32_t nranks, unsigned round)
{
	uint32_t nheld = UINT32_C(1) << round;

	return mmc_min_u32(nheld, nranks - nheld);
}

bool mmc_rounds_carry(const struct mmc_layout *layout, uint32_t carried_bytes)
{
	uint32_t nranks = layout->nranks;
	uint32_t most = 0;

	if (!layout->equal || layout->nchunks == 0)
		return false;
	for (unsigned k = 0; k < mmc_log2_ceil(nranks); k++)
		most = mmc_max_u32(most, mmc_rounds_blocks(nranks, k));
	return most > 0 && layout->block_bytes <= carried_bytes / most;
}
