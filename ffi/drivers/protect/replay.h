/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which numbers of a sender have come already, so that none is accepted twice: a bitmap of
 * the latest numbers in a ring of words (RFC 6479). Older numbers are refused.
 */
#ifndef MMC_DRIVERS_PROTECT_REPLAY_H
#define MMC_DRIVERS_PROTECT_REPLAY_H

#include "core/types.h"

struct mmc_replay {
	uint64_t *words;
	uint32_t nwords;   /* a power of two */
	uint64_t greatest; /* number that was accepted; 0: none */
};

/* Begins with no number accepted; the `nwords` words are all zeros. */
static inline void mmc_replay_init(struct mmc_replay *replay, uint64_t *words,
				   uint32_t nwords)
{
	*replay = (struct mmc_replay){ .words = words, .nwords = nwords };
}

/*
 * Accepts `number`, unless it was accepted before or may have been: it is 0, or its word,
 * of 64 numbers, is `nwords` or more words behind that of the greatest. Returns whether
 * it is accepted. Only numbers of genuine datagrams may be offered.
 */
bool mmc_replay_accept(struct mmc_replay *replay, uint64_t number);

#endif
