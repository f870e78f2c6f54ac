/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of a simulated network that are to come, and what they bring. */
#ifndef MMC_DRIVERS_SIM_EVENTS_H
#define MMC_DRIVERS_SIM_EVENTS_H

#include "drivers/sim/network.h"

/* The kind of an event: a frame comes out of the link whose index is the target. */
enum { MMC_EVENTS_FRAME = 0 };

/*
 * Adds an event: of a frame or a convoy, which it takes over, or of a timer. Without
 * memory for it, frees what it brings, and marks the run as invalid.
 */
void mmc_events_add(struct mmc_network *network,
		    const struct mmc_heap_item *item);

/* Frees all events, and what they bring. */
void mmc_events_free(struct mmc_network *network);

#endif
