/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides what an outage of the simulated network, or a deaf host, keeps from arriving.
 */
#ifndef MMC_DRIVERS_SIM_OUTAGE_H
#define MMC_DRIVERS_SIM_OUTAGE_H

#include "drivers/sim/network.h"

/*
 * Returns whether the frame that leaves a link at `event` is lost to an outage or to a
 * deaf host.
 */
bool mmc_outage_takes(const struct mmc_network *network,
		      const struct mmc_heap_item *event,
		      const struct mmc_frame *frame);

/*
 * Returns how long a connection between two hosts must wait for the end of an outage.
 */
uint64_t mmc_outage_left_ns(const struct mmc_network *network, uint32_t from,
			    uint32_t to);

#endif
