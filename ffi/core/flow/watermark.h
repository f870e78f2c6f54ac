/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far all receivers have drained, so that what is in flight stays below
 * what they buffer. Each rank counts, for each chain, the chunks that are here or
 * lost, whoever of the chain sent them. Minima go up a tree of fan-in 8 and the root
 * multicasts them: an acknowledgement to each sender would cost P times more.
 * Counts only grow, so lost, old and repeated reports do no harm.
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
	uint32_t window_chunks; /* of each sender */
	uint32_t step_chunks; /* a report is due after this advance; 0: never */
	uint32_t stride_chunks; /* or after so many advances of any */
	uint32_t nadvances;	/* of any chain since the last report */
	bool moved;		/* enough may have changed for a report */
	uint32_t *own;		/* [nchains] drained here */
	uint32_t *lengths;	/* [nchains] chunks of each */
	uint32_t *children; /* [nchildren][nchains] minima of their subtrees */
	uint32_t *told;	    /* [nchains] what was reported last */
	uint32_t *drained;  /* [nchains] by all ranks */
};

/* Whom `rank`, not 0, reports to. */
static inline uint32_t mmc_watermark_parent(uint32_t rank)
{
	return (rank - 1) / MMC_WATERMARK_FAN_IN;
}

/* The memory for `nranks` ranks and `nchains` chains, in bytes. */
size_t mmc_watermark_bytes(uint32_t nranks, uint32_t nchains);

/*
 * Begins in `memory`, mmc_watermark_bytes() long. No report is ever due if
 * every chain fits into its sender's window.
 */
void mmc_watermark_init(struct mmc_watermark *watermark, uint8_t *memory,
			uint32_t rank, const struct mmc_schedule *schedule);

/* This rank has drained `chain` up to `position`. */
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
 * Takes a child's report. Returns false, and takes nothing, if `source` is no
 * child of this rank or `npositions` is not the number of chains.
 */
bool mmc_watermark_report(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/* Takes what the root says; false if `source` is not the root, as above. */
bool mmc_watermark_settle(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/*
 * Whether this rank has something to report. If so writes the minima of its
 * subtree to `positions`, nchains long, and whom to tell: its parent or, as
 * root, MMC_PEER_ALL.
 */
bool mmc_watermark_due(struct mmc_watermark *watermark, uint32_t *positions,
		       uint32_t *peer);

#endif
