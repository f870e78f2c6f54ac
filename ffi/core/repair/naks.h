/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NAKs that a repairer has yet to answer. Each is kept as the runs of one rank that
 * have not been sent since.
 */
#ifndef MMC_CORE_REPAIR_NAKS_H
#define MMC_CORE_REPAIR_NAKS_H

#include "core/types.h"

/* The most runs that are kept. A further one is dropped: its sender will ask again. */
#define MMC_NAKS_MAX 256

/* Chunks that `peer` has asked for, or was sent. */
struct mmc_peer_run {
	uint32_t peer;
	struct mmc_run run;
};

struct mmc_naks {
	uint32_t count; /* how many of `items` are in use */
	struct mmc_peer_run items[MMC_NAKS_MAX];
};

/* Returns whether there is room for one more run. */
static inline bool mmc_naks_has_room(const struct mmc_naks *naks)
{
	return naks->count < MMC_NAKS_MAX;
}

/* Records that `peer` has asked for `run`. There must be room. */
static inline void mmc_naks_add(struct mmc_naks *naks, uint32_t peer,
				struct mmc_run run)
{
	naks->items[naks->count++] =
		(struct mmc_peer_run){ .peer = peer, .run = run };
}

/*
 * Returns whether `peer` has asked for `chunk`, and writes to `nothers` how many
 * requests of other ranks for it are kept.
 */
bool mmc_naks_include(const struct mmc_naks *naks, uint32_t peer,
		      uint32_t chunk, uint32_t *nothers);

/*
 * Removes the chunks of `run`, which have been sent, from the NAKs of `peer`, or of all
 * ranks if that is MMC_PEER_ALL.
 */
void mmc_naks_remove(struct mmc_naks *naks, uint32_t peer, struct mmc_run run);

#endif
