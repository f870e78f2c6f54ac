/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracks how much of each chain all receivers have drained, so that what is in flight
 * stays below what they buffer. Each rank counts, for each chain, the chunks that are
 * here or lost, whichever sender of the chain sent them. Minima go up a tree of fan-in
 * 8 and the root multicasts them: an acknowledgement to each sender would cost P times
 * more. Counts only grow, so lost, old and repeated reports do no harm.
 */
#ifndef MMC_CORE_FLOW_WATERMARK_H
#define MMC_CORE_FLOW_WATERMARK_H

#include "core/plan/schedule.h"

#define MMC_WATERMARK_FAN_IN 8

struct mmc_watermark {
	uint32_t rank;
	uint32_t nranks;
	uint32_t nchains;
	uint32_t nchildren;
	uint32_t window_chunks; /* the window of each sender */
	/* A report is due after one chain advances this far; 0: never. */
	uint32_t step_chunks;
	/* A report is due after this many advances of any chains. */
	uint32_t stride_chunks;
	uint32_t nadvances; /* advances of any chain since the last report */
	bool moved;	    /* enough may have changed for a report */
	uint32_t *own;	    /* [nchains] drained here */
	uint32_t *lengths;  /* [nchains] chunks of each chain */
	uint32_t *children; /* [nchildren][nchains] minima of their subtrees */
	uint32_t *told;	    /* [nchains] reported last */
	uint32_t *drained;  /* [nchains] drained by all ranks */
};

/* Returns the rank that `rank`, which is not 0, reports to. */
static inline uint32_t mmc_watermark_parent(uint32_t rank)
{
	return (rank - 1) / MMC_WATERMARK_FAN_IN;
}

/* Returns the bytes of memory for `nranks` ranks and `nchains` chains. */
size_t mmc_watermark_bytes(uint32_t nranks, uint32_t nchains);

/*
 * Initializes `watermark` in `memory`, mmc_watermark_bytes() long. No report is ever
 * due if every chain fits into its sender's window.
 */
void mmc_watermark_init(struct mmc_watermark *watermark, uint8_t *memory,
			uint32_t rank, const struct mmc_schedule *schedule);

/* Records that this rank has drained `chain` up to `position`. */
static inline void mmc_watermark_drain(struct mmc_watermark *watermark,
				       uint32_t chain, uint32_t position)
{
	if (position <= watermark->own[chain])
		return;
	watermark->own[chain] = position;
	watermark->nadvances++;
	watermark->moved |= position - watermark->told[chain] >=
				    watermark->step_chunks ||
			    watermark->nadvances >= watermark->stride_chunks;
}

/*
 * Takes a child's report. Returns false, and takes nothing, if `source` is no child of
 * this rank or `npositions` is not the number of chains.
 */
bool mmc_watermark_report(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/*
 * Takes the root's minima of all ranks. Returns false, and takes nothing, if `source`
 * is not the root or `npositions` is not the number of chains.
 */
bool mmc_watermark_settle(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/*
 * Returns whether this rank has something to report. If so, writes the minima of its
 * subtree to `positions`, nchains long, and the rank to tell: its parent or, on the
 * root, MMC_PEER_ALL.
 */
bool mmc_watermark_due(struct mmc_watermark *watermark, uint32_t *positions,
		       uint32_t *peer);

#endif
