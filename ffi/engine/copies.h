/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of this rank's blocks, which serve repairs once the user has the buffers back.
 *
 * Only operations that have completed for the user but not for the protocol need a
 * copy. They are few, however many operations wait to begin, so copies belong to the
 * stream and not to each request. They are reserved at a start, which may fail, so that
 * they are available at the end, which must not fail.
 */
#ifndef MMC_ENGINE_COPIES_H
#define MMC_ENGINE_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct mmc_copy {
	struct mmc_copy *next; /* next in the list of idle copies */
	size_t nbytes;
	uint8_t bytes[];
};

struct mmc_copies {
	struct mmc_copy *idle; /* list of idle copies, all of `nbytes` */
	size_t nbytes;	       /* the largest size that was ever reserved */
	uint32_t n;	       /* copies of `nbytes`, idle or in use */
};

/*
 * Ensures that there are at least `n` copies of at least `nbytes`; copies in use count
 * if they are large enough. Writes the number of new copies to `*nmade`. Returns 0 or
 * -MMC_ENOMEM.
 */
int mmc_copies_reserve(struct mmc_copies *copies, size_t nbytes, uint32_t n,
		       uint32_t *nmade);

/* Takes an idle copy. The caller has reserved as many as it uses at a time. */
struct mmc_copy *mmc_copies_take(struct mmc_copies *copies);

/* Gives a copy back; NULL is allowed. */
void mmc_copies_give(struct mmc_copies *copies, struct mmc_copy *copy);

/* Frees all idle copies. */
void mmc_copies_clear(struct mmc_copies *copies);

#endif
