/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who multicasts after whom. M chains run side by side; in a chain the ranks
 * take turns, one after the other. Rank r sits in chain r mod M at turn r / M,
 * so any M from 1 to P will do and P need not divide. A chain's position counts
 * the chunks of its ranks in the order of their turns.
 */
#ifndef MMC_CORE_SCHEDULE_H
#define MMC_CORE_SCHEDULE_H

#include "core/layout.h"

struct mmc_schedule {
	uint32_t nchains; /* M: parallel roots */
	uint32_t nranks;
	uint32_t block_chunks;
	uint32_t window_chunks; /* what each active sender may have in flight */
	uint32_t batch_chunks;	/* what it sends in one go */
};

/* In place of a number of chains: chosen from the agreed window. */
#define MMC_CHAINS_AUTO 0

/* The datagrams of one batch: the fewest worth a system call, and the most. */
#define MMC_BATCH_CHUNKS_MIN 4
#define MMC_BATCH_CHUNKS_MAX 20

/*
 * Plans the turns for blocks laid out by `layout` when every receiver buffers
 * `window_bytes`. With `nchains` MMC_CHAINS_AUTO all ranks send at once as long
 * as the window holds two batches of each other rank, else as many as it holds
 * two batches of, but at least two: fewer would idle a sender's own downlink.
 * With `apart` no sender's share is more than an equal part of the window, since
 * that is all that a receiver has for it. The result depends on nothing but the arguments, equal on every rank.
 */
void mmc_schedule_init(struct mmc_schedule *schedule,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, bool apart);

static inline uint32_t mmc_schedule_chain(const struct mmc_schedule *schedule,
					  uint32_t rank)
{
	return rank % schedule->nchains;
}

static inline uint32_t mmc_schedule_turn(const struct mmc_schedule *schedule,
					 uint32_t rank)
{
	return rank / schedule->nchains;
}

/* The rank whose turn `turn` of `chain` is. */
static inline uint32_t mmc_schedule_rank(const struct mmc_schedule *schedule,
					 uint32_t chain, uint32_t turn)
{
	return turn * schedule->nchains + chain;
}

/* The position in its chain of the first chunk of `rank`. */
static inline uint32_t mmc_schedule_start(const struct mmc_schedule *schedule,
					  uint32_t rank)
{
	return mmc_schedule_turn(schedule, rank) * schedule->block_chunks;
}

/* The chunks of all ranks of `chain`, which is below nchains. */
static inline uint32_t mmc_schedule_length(const struct mmc_schedule *schedule,
					   uint32_t chain)
{
	uint32_t nturns = (schedule->nranks - chain + schedule->nchains - 1) /
			  schedule->nchains;

	return nturns * schedule->block_chunks;
}

#endif
