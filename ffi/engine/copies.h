/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of own blocks, which serve repairs when the user has the buffers back.
 *
 * Only operations that are over for the user and not for the protocol need one,
 * and of these there are few, however many wait to begin. So a stream has copies,
 * and not each request. They are reserved at a start, which may fail, to be there
 * at its end, which must not.
 */
#ifndef MMC_ENGINE_COPIES_H
#define MMC_ENGINE_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct mmc_copy {
	struct mmc_copy *next; /* that is idle */
	size_t nbytes;
	uint8_t bytes[];
};

struct mmc_copies {
	struct mmc_copy *idle; /* all of `nbytes` */
	size_t nbytes;	       /* the most that was ever reserved */
	uint32_t n;	       /* of `nbytes`, idle or not */
};

/*
 * Has at least `n` copies of at least `nbytes`; those that are in use count, if
 * they are large enough. Writes how many it made. Returns 0 or -MMC_ENOMEM.
 */
int mmc_copies_reserve(struct mmc_copies *copies, size_t nbytes, uint32_t n,
		       uint32_t *nmade);

/* Takes one; the caller has reserved as many as it uses at a time. */
struct mmc_copy *mmc_copies_take(struct mmc_copies *copies);

/* Gives one back, if not NULL. */
void mmc_copies_give(struct mmc_copies *copies, struct mmc_copy *copy);

/* Frees all that are not in use. */
void mmc_copies_clear(struct mmc_copies *copies);

#endif
