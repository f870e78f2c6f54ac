/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of convoys through the simulated network, one event a link. A switch forwards a
 * packet once it has received all of it, so a convoy is on several links at a time. No
 * link drops or loses a packet of a convoy.
 */
#ifndef MMC_DRIVERS_SIM_TRANSIT_H
#define MMC_DRIVERS_SIM_TRANSIT_H

#include "drivers/sim/network.h"

/*
 * Sends a copy of `convoy`; its `packets.last_ns` may be anything. mmc_network_next()
 * reports the arrival of all its packets as MMC_NETWORK_CONVOY, with the node that it was
 * for as the target and the convoy as the subject, which the caller then gives back to
 * `network->convoys`. Returns when the last packet will have left the sender.
 */
uint64_t mmc_transit_send(struct mmc_network *network,
			  const struct mmc_convoy *convoy);

/*
 * Handles the event of a convoy that comes out of a link: sends it on over the next link,
 * or returns true if this link has led to its goal.
 */
bool mmc_transit_reach(struct mmc_network *network, struct mmc_convoy *convoy,
		       uint32_t link);

#endif
