/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/range.h"

#include <mpimcast/errors.h>

#include "support/error.h"

int mmc_range_check(const struct mmc_range *range, uint64_t block_bytes)
{
	if (range->first_bytes <= block_bytes &&
	    range->nbytes <= block_bytes - range->first_bytes)
		return 0;
	mmc_error_set("%llu bytes from byte %llu on are not in the block of "
		      "rank %u, which has %llu",
		      (unsigned long long)range->nbytes,
		      (unsigned long long)range->first_bytes, range->rank,
		      (unsigned long long)block_bytes);
	return -MMC_EINVAL;
}
