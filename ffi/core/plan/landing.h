/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which blocks have *landed*, and in what order: a block lands when all of its chunks are
 * present. What is said here is final, and any thread may read it while the operation
 * goes on: whoever sees that a block has landed, or that a run of chunks is present, sees
 * their payloads as well.
 *
 * This rank's block and empty ones land at the start.
 */
#ifndef MMC_CORE_PLAN_LANDING_H
#define MMC_CORE_PLAN_LANDING_H

#include "core/plan/bitmap.h"
#include "core/plan/layout.h"

struct mmc_landing {
	const struct mmc_layout *layout;
	const struct mmc_bitmap *present;
	struct mmc_run ranks; /* those that have a block, be it an empty one */
	uint32_t *lacking; /* [ranks.count] chunks that are not present yet */
	uint32_t *order;  /* [ranks.count] the ranks whose blocks have landed */
	uint32_t nlanded; /* the length of `order` so far: use atomics */
	/* The block of the latest chunks: the next ones are likely of it, too. */
	struct mmc_block block;
	uint32_t rank;
};

/* Returns the bytes of memory that a landing of `nblocks` blocks takes. */
size_t mmc_landing_bytes(uint32_t nblocks);

/*
 * Initializes a landing of the blocks of `ranks` in `memory`, mmc_landing_bytes() long.
 * Of all ranks, `own` alone may have chunks in `present`, and has all of its own there.
 * Layout and bitmap outlive the landing.
 */
void mmc_landing_init(struct mmc_landing *landing, uint8_t *memory,
		      const struct mmc_layout *layout,
		      const struct mmc_bitmap *present, struct mmc_run ranks,
		      uint32_t own);

/* Records that the chunks of `run` have become present; none of them was before. */
void mmc_landing_add(struct mmc_landing *landing, struct mmc_run run);

/* Returns how many blocks have landed. */
static inline uint32_t mmc_landing_count(const struct mmc_landing *landing)
{
	return __atomic_load_n(&landing->nlanded, __ATOMIC_ACQUIRE);
}

/*
 * Returns the rank whose block was the one with number `index`, from 0, to land. It must
 * have landed.
 */
static inline uint32_t mmc_landing_rank(const struct mmc_landing *landing,
					uint32_t index)
{
	return landing->order[index];
}

/*
 * Returns whether `nbytes` are present of the block of `rank`, from byte `first_bytes`
 * on. They lie within the block.
 */
bool mmc_landing_has(const struct mmc_landing *landing, uint32_t rank,
		     uint64_t first_bytes, uint64_t nbytes);

#endif
