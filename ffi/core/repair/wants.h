/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a fetcher wants from its left neighbour. A wanted chunk becomes due
 * once the neighbour is known to have it, and is then read.
 */
#ifndef MMC_CORE_REPAIR_WANTS_H
#define MMC_CORE_REPAIR_WANTS_H

#include "core/plan/bitmap.h"

struct mmc_wants {
	/* Wanted, as far as seen not claimed since. */
	struct mmc_bitmap wanted;
	/* Wanted chunks that are to be fetched now. */
	struct mmc_bitmap due;
	struct mmc_bitmap reading; /* wanted chunks that are being read */
	uint32_t due_from;	   /* no chunk below this is due */
};

/* Returns the bytes of memory that the wants of `nchunks` chunks take. */
size_t mmc_wants_bytes(uint32_t nchunks);

/* Initializes `wants` in `memory`, mmc_wants_bytes() long; nothing is wanted. */
void mmc_wants_init(struct mmc_wants *wants, uint8_t *memory, uint32_t nchunks);

/* Returns the number of words of each bitmap. */
static inline uint32_t mmc_wants_words(const struct mmc_wants *wants)
{
	return (uint32_t)(mmc_bitmap_bytes(wants->wanted.nbits) /
			  sizeof(uint64_t));
}

/*
 * Adds the chunks of `run` that are not in `claimed`. With `due`, those that are not
 * being read are due at once. Returns whether any was not wanted before.
 */
bool mmc_wants_add(struct mmc_wants *wants, const struct mmc_bitmap *claimed,
		   struct mmc_run run, bool due);

/*
 * Forgets the chunks of word `word` that are in `claimed`. Returns which of the others
 * are wanted, and neither due nor being read, as bits of that word.
 */
uint64_t mmc_wants_lacking(struct mmc_wants *wants,
			   const struct mmc_bitmap *claimed, uint32_t word);

/* Forgets all chunks in `claimed`. */
void mmc_wants_forget(struct mmc_wants *wants,
		      const struct mmc_bitmap *claimed);

/*
 * Makes due the wanted chunks that the neighbour has, unless they are being read:
 * `held` is word `word` of its bitmap. Returns whether any was not due before.
 */
bool mmc_wants_hold(struct mmc_wants *wants, uint32_t word, uint64_t held);

/* Makes due all wanted chunks that are not being read. */
void mmc_wants_make_due(struct mmc_wants *wants);

/* Returns whether any chunk may be due. */
static inline bool mmc_wants_any_due(const struct mmc_wants *wants)
{
	return wants->due_from < wants->due.nbits;
}

/*
 * Returns the next run of chunks that are due and not in `claimed`, at most `nmax` of
 * them, which are then due no more. Its count is 0 if there is none.
 */
struct mmc_run mmc_wants_take_due(struct mmc_wants *wants,
				  const struct mmc_bitmap *claimed,
				  uint32_t nmax);

/* Records that the chunks of `run` are being read. */
static inline void mmc_wants_begin_read(struct mmc_wants *wants,
					struct mmc_run run)
{
	mmc_bitmap_set_run(&wants->reading, run);
}

/* Records that the read of `run` has ended. Unless `good`, its chunks are due again. */
void mmc_wants_end_read(struct mmc_wants *wants, struct mmc_run run, bool good);

#endif
