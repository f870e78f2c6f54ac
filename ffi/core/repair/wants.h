/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a fetcher wants of its left neighbour: first only wanted, then due
 * once the neighbour is known to hold them, then being read.
 */
#ifndef MMC_CORE_REPAIR_WANTS_H
#define MMC_CORE_REPAIR_WANTS_H

#include "core/plan/bitmap.h"

struct mmc_wants {
	struct mmc_bitmap wanted;  /* not claimed at the last look */
	struct mmc_bitmap due;	   /* of them, those to be fetched now */
	struct mmc_bitmap reading; /* of them, those being read */
	uint32_t due_from;	   /* no chunk below is due */
};

/* The bytes of memory for `nchunks` chunks. */
size_t mmc_wants_bytes(uint32_t nchunks);

/* Initializes an empty set in `memory`, mmc_wants_bytes() long. */
void mmc_wants_init(struct mmc_wants *wants, uint8_t *memory, uint32_t nchunks);

/* Returns the number of words of each bitmap. */
static inline uint32_t mmc_wants_words(const struct mmc_wants *wants)
{
	return (uint32_t)(mmc_bitmap_bytes(wants->wanted.nbits) /
			  sizeof(uint64_t));
}

/*
 * Adds the chunks of `run` that are not in `claimed`; returns whether any is new. With
 * `due`, they are due at once.
 */
bool mmc_wants_add(struct mmc_wants *wants, const struct mmc_bitmap *claimed,
		   struct mmc_run run, bool due);

/*
 * Returns which chunks of word `word` are wanted, and neither due nor being read.
 * Forgets those in `claimed`.
 */
uint64_t mmc_wants_lacking(struct mmc_wants *wants,
			   const struct mmc_bitmap *claimed, uint32_t word);

/* Forgets all chunks in `claimed`. */
void mmc_wants_forget(struct mmc_wants *wants,
		      const struct mmc_bitmap *claimed);

/*
 * Makes the wanted chunks among `held`, the neighbour's word `word`, due unless they
 * are being read. Returns whether any was not due before.
 */
bool mmc_wants_hold(struct mmc_wants *wants, uint32_t word, uint64_t held);

/* Makes all wanted chunks due that are not being read. */
void mmc_wants_make_due(struct mmc_wants *wants);

/* Returns whether chunks may be due. */
static inline bool mmc_wants_any_due(const struct mmc_wants *wants)
{
	return wants->due_from < wants->due.nbits;
}

/*
 * Takes the next run, of at most `nmax` chunks, that is due and not in `claimed`; its
 * count is 0 if there is none.
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

/* Records that the read of `run` has ended; unless `good`, its chunks are due again. */
void mmc_wants_end_read(struct mmc_wants *wants, struct mmc_run run, bool good);

#endif
