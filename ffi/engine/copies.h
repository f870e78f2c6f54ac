/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of this rank's blocks, which serve repairs once the user has the buffers back.
 *
 * An operation needs a copy from its completion for the user until other ranks can ask
 * for no more repairs. Few operations of a stream are in that state at a time, however
 * many are queued, so copies belong to the stream and not to each request.
 *
 * The start of an operation may fail, but its completion may not. So each start
 * reserves the copy that the completion will take.
 */
#ifndef MMC_ENGINE_COPIES_H
#define MMC_ENGINE_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct mmc_copy {
	struct mmc_copy *next; /* next in the list of idle copies */
	size_t nbytes;	       /* room in `bytes` */
	uint8_t bytes[];
};

struct mmc_copies {
	struct mmc_copy *idle; /* list of idle copies, all of `nbytes` */
	size_t nbytes;	       /* the largest size that was ever reserved */
	uint32_t ncopies;      /* copies of `nbytes`, idle or in use */
};

/*
 * Ensures that there are at least `ncopies` copies, idle or in use, with room for at
 * least `nbytes` each. Writes to `*nmade` how many copies it has allocated for that.
 * Returns 0 or -MMC_ENOMEM.
 */
int mmc_copies_reserve(struct mmc_copies *copies, size_t nbytes,
		       uint32_t ncopies, uint32_t *nmade);

/* Takes an idle copy. There must be one: the caller has reserved it. */
struct mmc_copy *mmc_copies_take(struct mmc_copies *copies);

/* Gives back a copy that mmc_copies_take() returned; NULL is allowed. */
void mmc_copies_give(struct mmc_copies *copies, struct mmc_copy *copy);

/* Frees all idle copies. */
void mmc_copies_clear(struct mmc_copies *copies);

#endif
