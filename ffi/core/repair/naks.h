/* SPDX-License-Identifier: BSD-3-Clause */
/* What other ranks have asked a repairer for and not yet been sent. */
#ifndef MMC_CORE_REPAIR_ASKS_H
#define MMC_CORE_REPAIR_ASKS_H

#include "core/types.h"

/* Asks kept at a time. A further one is dropped: its sender asks again. */
#define MMC_ASKS_MAX 256

struct mmc_ask {
	uint32_t peer;
	struct mmc_run run;
};

struct mmc_asks {
	uint32_t count;
	struct mmc_ask items[MMC_ASKS_MAX];
};

/* Returns whether one more can be kept. */
static inline bool mmc_asks_room(const struct mmc_asks *asks)
{
	return asks->count < MMC_ASKS_MAX;
}

/* Keeps that `peer` asks for `run`; there must be room. */
static inline void mmc_asks_add(struct mmc_asks *asks, uint32_t peer,
				struct mmc_run run)
{
	asks->items[asks->count++] = (struct mmc_ask){ peer, run };
}

/*
 * Returns whether `peer` waits for `chunk`, and writes how many other asks are for it.
 */
bool mmc_asks_by(const struct mmc_asks *asks, uint32_t peer, uint32_t chunk,
		 uint32_t *nothers);

/* Takes `run` out of the asks of `peer`, or of all ranks for MMC_PEER_ALL. */
void mmc_asks_settle(struct mmc_asks *asks, uint32_t peer, struct mmc_run run);

#endif
