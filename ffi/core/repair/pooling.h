/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers ranks that lack different chunks of a group by parity of that group: as many chunks
 * as the rank needs that lacks most mend the losses of all, also of ranks that ask later. Rows
 * that were sent within the repairer's resting time count as received by all ranks. Each
 * parity chunk is a new row, so every rank that receives it can use it.
 */
#ifndef MMC_CORE_REPAIR_POOLING_H
#define MMC_CORE_REPAIR_POOLING_H

#include "core/plan/grouping.h"
#include "core/repair/repairer.h"

/* The parity chunks, or rows, of one group that were sent in answer to NAKs. */
struct mmc_pooled {
	uint64_t sent_ns; /* when a row was last sent */
	uint8_t nrows;	  /* rows sent so far */
	/* The last of these: they may not have arrived yet at a rank that asks now. */
	uint8_t nrecent;
};

struct mmc_pooling {
	struct mmc_grouping grouping; /* valid once the flow has begun */
	struct mmc_pooled *groups;    /* [groups of the block] */
	uint16_t *lacking;	      /* [nranks] 0 between calls */
	uint32_t nsent;	   /* chunks of the block that were multicast */
	uint32_t answered; /* the rank whose NAK was answered last, or none */
};

/*
 * Returns the bytes of memory that a pooling takes for a block of at most `nchunks` in groups
 * of `data_chunks`.
 */
size_t mmc_pooling_bytes(uint32_t nchunks, uint32_t data_chunks,
			 uint32_t nranks);

/* Makes a pooling in `memory`, mmc_pooling_bytes() long, and returns it. */
struct mmc_pooling *mmc_pooling_init(uint8_t *memory, uint32_t nchunks,
				     uint32_t data_chunks, uint32_t nranks);

/*
 * Returns whether parity is to be multicast now in the place of chunks that were asked of
 * `repairer`, which then count as sent. If so, writes the group of its own block, and the
 * rows, of which there are at most `nrows_max`. To be called before mmc_repairer_next().
 */
bool mmc_pooling_next(struct mmc_pooling *pooling,
		      struct mmc_repairer *repairer, uint32_t nrows_max,
		      uint64_t now_ns, uint32_t *group, struct mmc_run *rows);

#endif
