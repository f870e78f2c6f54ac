/* SPDX-License-Identifier: BSD-3-Clause */
/* The allowance for reordering: how long a missing chunk counts as late before it is lost. */
#ifndef MMC_CORE_REPAIR_ALLOWANCE_H
#define MMC_CORE_REPAIR_ALLOWANCE_H

#include "core/types.h"
#include "support/bits.h"

#define MMC_ALLOWANCE_MIN_NS (50 * MMC_US_NS)
#define MMC_ALLOWANCE_MAX_NS MMC_MS_NS

/*
 * Returns the allowance: half a round trip, within these bounds, or `late_ns` if chunks
 * were slower than that.
 */
static inline uint64_t mmc_allowance_ns(uint64_t srtt_ns, uint64_t late_ns)
{
	uint64_t half_ns = mmc_max_u64(MMC_ALLOWANCE_MIN_NS, srtt_ns / 2);

	return mmc_max_u64(mmc_min_u64(MMC_ALLOWANCE_MAX_NS, half_ns), late_ns);
}

#endif
