/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides what is lost to an outage of the simulated network, or to a deaf host. */
#ifndef MMC_DRIVERS_SIM_OUTAGE_H
#define MMC_DRIVERS_SIM_OUTAGE_H

#include "drivers/sim/network.h"

/*
 * Returns whether a frame is lost to an outage or to a deaf host when it comes out of a
 * link: `event` has the time and, as its target, the index of the link.
 */
bool mmc_outage_takes(const struct mmc_network *network,
		      const struct mmc_heap_item *event,
		      const struct mmc_frame *frame);

/*
 * Returns how long from now on an outage lasts that cuts a connection over these links,
 * or 0 if none does.
 */
uint64_t mmc_outage_left_ns(const struct mmc_network *network,
			    const uint32_t *links, uint32_t nlinks);

#endif
