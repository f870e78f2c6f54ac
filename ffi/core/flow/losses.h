/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much multicast has lost on the way to this rank lately: how many of its chunks, and
 * in how many runs of adjacent ones. Older operations count ever less.
 */
#ifndef MMC_CORE_FLOW_LOSSES_H
#define MMC_CORE_FLOW_LOSSES_H

#include "support/bits.h"

struct mmc_losses {
	uint32_t sent_chunks; /* those that others have sent to this rank */
	uint32_t lost_chunks;
	uint32_t nruns; /* runs of adjacent lost chunks */
};

/* When more chunks than that were sent, all that was counted counts half. */
#define MMC_LOSSES_CHUNKS_MAX (UINT32_C(1) << 18)

/* Adds what an operation has lost. */
static inline void mmc_losses_add(struct mmc_losses *losses,
				  const struct mmc_losses *more)
{
	losses->sent_chunks += more->sent_chunks;
	losses->lost_chunks += more->lost_chunks;
	losses->nruns += more->nruns;
	while (losses->sent_chunks > MMC_LOSSES_CHUNKS_MAX) {
		losses->sent_chunks /= 2;
		losses->lost_chunks /= 2;
		losses->nruns /= 2;
	}
}

/*
 * A rank that has received nothing yet assumes that it has lost 1/8 of a chunk in 80. If the
 * path loses less than that, needless parity costs little; if it loses more, each loss would
 * cost a round trip.
 */
#define MMC_LOSSES_PRIOR_CHUNKS 80
#define MMC_LOSSES_PRIOR_PART 8

/*
 * Returns the share of chunks that are expected to be lost, in units of 2^-32. The assumption
 * above weighs less with each chunk that was sent to any of `nreceivers` ranks, since a rank
 * that has lost chunks asks for parity itself.
 */
static inline uint32_t mmc_losses_share(const struct mmc_losses *losses,
					uint32_t nreceivers)
{
	uint64_t sent = losses->sent_chunks;
	uint64_t lost = mmc_min_u32(losses->lost_chunks, losses->sent_chunks);
	uint64_t known = (lost << 32) / (sent + MMC_LOSSES_PRIOR_CHUNKS);

	return (uint32_t)(known +
			  (UINT64_C(1) << 32) / ((sent * nreceivers +
						  MMC_LOSSES_PRIOR_CHUNKS) *
						 MMC_LOSSES_PRIOR_PART));
}

/* Returns how many adjacent chunks are lost at a time, as a mean; at least 1. */
static inline uint32_t mmc_losses_run_chunks(const struct mmc_losses *losses)
{
	if (losses->nruns == 0)
		return 1;
	return mmc_max_u32(1, (losses->lost_chunks + losses->nruns / 2) /
				      losses->nruns);
}

#endif
