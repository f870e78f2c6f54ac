/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates of a link, in bytes per second: the time that bytes take, and smoothing. */
#ifndef MMC_CORE_FLOW_RATE_H
#define MMC_CORE_FLOW_RATE_H

#include "core/types.h"

/* Returns how long `nbytes` take at a rate, which is not 0. */
static inline uint64_t mmc_rate_time_ns(uint64_t bytes_per_s, uint64_t nbytes)
{
	if (nbytes > UINT64_MAX / MMC_S_NS)
		return MMC_S_NS * (nbytes / bytes_per_s);
	return nbytes * MMC_S_NS / bytes_per_s;
}

/* Smooths the latest measurement of a rate into earlier ones, with a gain of 1/4. */
static inline uint64_t mmc_rate_smooth(uint64_t bytes_per_s,
				       uint64_t latest_bytes_per_s)
{
	return (3 * bytes_per_s + latest_bytes_per_s) / 4;
}

#endif
