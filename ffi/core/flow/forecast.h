/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forecasts how long an operation takes if lost chunks are repeated, and if a code mends
 * them, and so what RELIABILITY=auto prefers.
 *
 * Data, parity and repairs take their time on the link. Chunks that are lost early are
 * repaired while others are still coming. Those that are lost in the last trip cost one
 * trip more, those whose repair is lost, too, another one, and so on. With a code that
 * holds for the groups that lose more chunks than they have parity. The model takes losses
 * for independent of each other, but for runs of adjacent chunks, and all receivers for
 * alike. The simulator agrees with its choices (bench/study/codes.py).
 */
#ifndef MMC_CORE_FLOW_FORECAST_H
#define MMC_CORE_FLOW_FORECAST_H

#include "core/types.h"

struct mmc_forecast {
	uint64_t data_ns;      /* how long the data alone is on a link */
	uint64_t trip_ns;      /* from when a chunk is missing to its repair */
	uint32_t block_chunks; /* of the largest block */
	uint32_t tail_chunks;  /* those that a rank receives in the last trip */
	uint32_t nreceivers;
	/* The share of chunks that are lost, in units of 2^-32. */
	uint32_t loss;
	uint32_t run_chunks; /* how many adjacent chunks are lost at a time */
};

/*
 * Returns the cost of an operation whose lost chunks are repeated: half of the mean of its
 * time and half of its 99th percentile.
 */
uint64_t mmc_forecast_repeat_ns(const struct mmc_forecast *forecast);

/* Returns the same if `parity_chunks` go with each group of `data_chunks`. */
uint64_t mmc_forecast_code_ns(const struct mmc_forecast *forecast,
			      uint32_t data_chunks, uint32_t parity_chunks);

/*
 * Returns how many parity chunks, up to `parity_max`, cost least; 0 if it costs least to
 * repeat. Powers of two and `parity_max` are considered.
 */
uint32_t mmc_forecast_parity(const struct mmc_forecast *forecast,
			     uint32_t data_chunks, uint32_t parity_max);

#endif
