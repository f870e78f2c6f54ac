/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracks how much of each chain all receivers have *drained*: chunks that take no more
 * room in receive buffers, since they are here, late or lost. What is in flight beyond
 * that must stay below what receivers can buffer.
 *
 * Each rank counts the drained chunks of each chain, whichever of its senders sent
 * them. The minima of the counts go up a tree of fan-in 8, and the root multicasts the
 * minima of all ranks, the watermark. Acknowledgements to each sender would cost P
 * times as much. Counts only grow, so lost, old and repeated reports do no harm.
 */
#ifndef MMC_CORE_FLOW_WATERMARK_H
#define MMC_CORE_FLOW_WATERMARK_H

#include "core/plan/schedule.h"

/* The most ranks that report to the same rank. */
#define MMC_WATERMARK_FAN_IN 8

struct mmc_watermark {
	uint32_t rank;
	uint32_t nranks;
	uint32_t nchains;
	uint32_t nchildren;	/* the ranks that report to this one */
	uint32_t window_chunks; /* the window of each sender */
	/* A report is due when a single chain has advanced this far; 0: never. */
	uint32_t step_chunks;
	/* A report is due when chains have advanced this often, all together. */
	uint32_t stride_chunks;
	uint32_t nadvances; /* how often they have, since the last report */
	bool moved;	    /* a report may be due */
	uint32_t *own;	    /* [nchains] drained by this rank */
	uint32_t *lengths;  /* [nchains] the chunks of each chain */
	uint32_t *children; /* [nchildren][nchains] minima of their subtrees */
	uint32_t *told;	    /* [nchains] what this rank reported last */
	uint32_t *drained;  /* [nchains] drained by all ranks */
};

/* Returns the rank that `rank`, which is not 0, reports to. */
static inline uint32_t mmc_watermark_parent(uint32_t rank)
{
	return (rank - 1) / MMC_WATERMARK_FAN_IN;
}

/* Returns the bytes of memory that a watermark of so many ranks and chains takes. */
size_t mmc_watermark_bytes(uint32_t nranks, uint32_t nchains);

/*
 * Initializes the watermark of `rank` in `memory`, mmc_watermark_bytes() long. If every
 * chain is shorter than a window, no report will ever be due.
 */
void mmc_watermark_init(struct mmc_watermark *watermark, uint8_t *memory,
			uint32_t rank, const struct mmc_schedule *schedule);

/*
 * Advances a chain to a position beyond the present one, which counts so many times. If
 * no report will ever be due, nobody needs to know.
 */
static inline void mmc_watermark_advance(struct mmc_watermark *watermark,
					 uint32_t chain, uint32_t position,
					 uint32_t ntimes)
{
	if (watermark->step_chunks == 0)
		return;
	watermark->own[chain] = position;
	watermark->nadvances += ntimes;
	watermark->moved |= position - watermark->told[chain] >=
				    watermark->step_chunks ||
			    watermark->nadvances >= watermark->stride_chunks;
}

/* Records that this rank has drained `position` chunks of `chain`. */
static inline void mmc_watermark_drain(struct mmc_watermark *watermark,
				       uint32_t chain, uint32_t position)
{
	if (position > watermark->own[chain])
		mmc_watermark_advance(watermark, chain, position, 1);
}

/*
 * Does what mmc_watermark_drain() would do if it was called for each of the chunks up to
 * `position`.
 */
static inline void mmc_watermark_drain_run(struct mmc_watermark *watermark,
					   uint32_t chain, uint32_t position)
{
	uint32_t before = watermark->own[chain];

	if (position > before)
		mmc_watermark_advance(watermark, chain, position,
				      position - before);
}

/*
 * Returns how many chunks of `chain` all ranks have drained beyond the share that they
 * have drained of the chain that is furthest behind, of those that have not ended.
 */
uint32_t mmc_watermark_lead(const struct mmc_watermark *watermark,
			    uint32_t chain);

/*
 * Takes the minima in a child's report. Returns false, and changes nothing, if `source`
 * is no child of this rank or `npositions` is not the number of chains.
 */
bool mmc_watermark_report(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/*
 * Takes the minima of all ranks from the root. Returns false, and changes nothing, if
 * `source` is not the root or `npositions` is not the number of chains.
 */
bool mmc_watermark_settle(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions);

/*
 * Returns whether a report is due; it then counts as sent. Writes the minima of this
 * rank and those below it to `positions`, nchains long, and the rank to tell to `peer`:
 * the parent or, on the root, MMC_PEER_ALL.
 */
bool mmc_watermark_take_report(struct mmc_watermark *watermark,
			       uint32_t *positions, uint32_t *peer);

#endif
