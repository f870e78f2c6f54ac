/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/forecast.h"

#include "core/plan/grouping.h"
#include "support/bits.h"

/* ---- chances, in units of 2^-32 ------------------------------------------ */

#define SURE UINT32_MAX

/* Returns the chance that both of two independent events happen. */
static uint32_t both(uint32_t one, uint32_t other)
{
	return (uint32_t)((uint64_t)one * other >> 32);
}

/* Returns the chance that one of them happens, or both. */
static uint32_t either(uint32_t one, uint32_t other)
{
	uint64_t sum = (uint64_t)one + other - both(one, other);

	return (uint32_t)mmc_min_u64(SURE, sum);
}

/* Returns the chance that any of `n` events happens, each of which has the chance `each`. */
static uint32_t any_of(uint64_t n, uint32_t each)
{
	uint32_t any = 0;

	for (; n > 0 && each > 0; n /= 2) {
		if (n % 2)
			any = either(any, each);
		each = either(each, each);
	}
	return any;
}

/*
 * The least chance that no event happens from which the chances of others are calculated:
 * below it too few bits are left.
 */
#define NONE_MIN 256

/*
 * Writes to `more[i]` the chance that more than `i` of `n` events happen, each of which has
 * the chance `each`. Returns false if so many are likely that this cannot be calculated.
 */
static bool chances(uint32_t n, uint32_t each, uint32_t *more)
{
	uint64_t exactly = SURE - any_of(n, each);
	uint64_t odds = ((uint64_t)each << 32) / (SURE - each + UINT64_C(1));
	uint64_t sum = 0;

	if (exactly < NONE_MIN || odds > SURE)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		exactly = (exactly * odds >> 32) * (n - i) / (i + 1);
		exactly = mmc_min_u64(exactly, SURE);
		more[i] = (uint32_t)exactly;
	}
	for (uint32_t i = n; i-- > 0;) {
		sum = mmc_min_u64(SURE, sum + more[i]);
		more[i] = (uint32_t)sum;
	}
	return true;
}

/* ---- time ---------------------------------------------------------------- */

/* More trips make no difference to what costs least. */
#define TRIPS_MAX 32

/* The low bits of a trip's time that are dropped, so that its product with TRIPS_MAX fits. */
#define TRIP_DROPPED_BITS 6

/*
 * Returns the cost of the trips after the data: `n` events have a chance of `first` to
 * need a trip. Another one is needed if the request or the repair is lost.
 */
static uint64_t trips_ns(const struct mmc_forecast *forecast, uint64_t n,
			 uint32_t first)
{
	uint32_t again = either(forecast->loss, forecast->loss);
	/* The mean number of trips and its 99th percentile. */
	uint64_t twice = 0;

	for (unsigned trip = 0; trip < TRIPS_MAX && first > 0; trip++) {
		uint32_t any = any_of(n, first);

		twice += any;
		if (any > SURE / 100)
			twice += SURE;
		first = both(first, again);
	}
	return (forecast->trip_ns >> TRIP_DROPPED_BITS) * (twice / 2) >>
	       (32 - TRIP_DROPPED_BITS);
}

/*
 * Returns the part `share`, in units of 2^-32 and at most a few dozen, of a time of at most
 * a month. Low bits of the share, and of a time above 18 minutes, are dropped: the product
 * would not fit.
 */
static uint64_t part_ns(uint64_t time_ns, uint64_t share)
{
	unsigned dropped_bits = time_ns >> 40 > 0 ? 12 : 0;

	return (time_ns >> dropped_bits) * (share >> 16) >> (16 - dropped_bits);
}

/* Returns a number of chunks counted in runs, of which at least one is lost as a whole. */
static uint64_t runs_of(uint64_t nchunks, uint64_t run_chunks)
{
	return mmc_max_u64(1, nchunks / run_chunks);
}

uint64_t mmc_forecast_repeat_ns(const struct mmc_forecast *forecast)
{
	uint64_t nruns = runs_of(forecast->tail_chunks, forecast->run_chunks);
	uint64_t repeated = 0; /* as a share of the data */

	for (uint32_t lost = forecast->loss; lost > 0;
	     lost = both(lost, forecast->loss))
		repeated += any_of(forecast->nreceivers, lost);
	return forecast->data_ns + part_ns(forecast->data_ns, repeated) +
	       trips_ns(forecast, nruns * forecast->nreceivers, forecast->loss);
}

uint64_t mmc_forecast_code_ns(const struct mmc_forecast *forecast,
			      uint32_t data_chunks, uint32_t parity_chunks)
{
	uint32_t ndata = mmc_max_u32(1, mmc_min_u32(data_chunks,
						    forecast->block_chunks));
	uint32_t nparity =
		(ndata * parity_chunks + data_chunks - 1) / data_chunks;
	/* Groups are interleaved, so each has only its share of a run. */
	uint32_t share = (forecast->run_chunks + MMC_GROUPING_DEPTH_MAX - 1) /
			 MMC_GROUPING_DEPTH_MAX;
	uint32_t nruns = mmc_max_u32(1, (ndata + nparity) / share);
	uint64_t ngroups = (forecast->tail_chunks + ndata - 1) / ndata;
	uint64_t repaired = 0; /* chunks of a group, beyond its parity */
	uint32_t more[MMC_GROUP_CHUNKS_MAX];

	if (!chances(nruns, forecast->loss, more))
		return MMC_NEVER_NS;
	for (uint32_t i = nparity / share; i < nruns; i++)
		repaired +=
			share * (uint64_t)any_of(forecast->nreceivers, more[i]);
	return forecast->data_ns + forecast->data_ns * nparity / ndata +
	       part_ns(forecast->data_ns, repaired / ndata) +
	       trips_ns(forecast, ngroups * forecast->nreceivers,
			nparity / share < nruns ? more[nparity / share] : 0);
}

uint32_t mmc_forecast_parity(const struct mmc_forecast *forecast,
			     uint32_t data_chunks, uint32_t parity_max)
{
	uint64_t least_ns = mmc_forecast_repeat_ns(forecast);
	uint32_t best = 0;
	uint32_t parity = 1;

	/* Parity that alone takes longer than all trips is no use. */
	while (forecast->loss > 0 && parity <= parity_max &&
	       forecast->data_ns + forecast->data_ns * parity / data_chunks <
		       least_ns) {
		uint64_t cost_ns =
			mmc_forecast_code_ns(forecast, data_chunks, parity);

		if (cost_ns < least_ns) {
			least_ns = cost_ns;
			best = parity;
		}
		parity = parity < parity_max
				 ? mmc_min_u32(2 * parity, parity_max)
				 : parity_max + 1;
	}
	return best;
}
