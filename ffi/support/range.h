/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks, and ranges of blocks, that callers ask for (mpimcast/partial.h). */
#ifndef MMC_SUPPORT_RANGE_H
#define MMC_SUPPORT_RANGE_H

#include <mpimcast/partial.h>

/*
 * Returns 0 if `range` lies within a block of `block_bytes`; if not, sets an error that
 * says so and returns -MMC_EINVAL.
 */
int mmc_range_check(const struct mmc_range *range, uint64_t block_bytes);

/*
 * Returns whose block has number `index` if all land together: that of rank `own` is the
 * first, and the others follow by rank.
 */
static inline uint32_t mmc_landed_together(uint32_t own, uint32_t index)
{
	if (index == 0)
		return own;
	return index <= own ? index - 1 : index;
}

#endif
