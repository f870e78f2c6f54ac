/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says which hosts hang on which leaf, and which element of a network's `links` is
 * which link.
 */
#ifndef MMC_DRIVERS_SIM_TOPOLOGY_H
#define MMC_DRIVERS_SIM_TOPOLOGY_H

#include "drivers/sim/network.h"

/*
 * The order of the links in the array: hosts up, hosts down, then, with a spine, leaves
 * up and leaves down.
 */
static inline uint32_t mmc_trunk_up(const struct mmc_network *network,
				    uint32_t leaf)
{
	return 2 * network->options.nhosts + leaf;
}

static inline uint32_t mmc_trunk_down(const struct mmc_network *network,
				      uint32_t leaf)
{
	return mmc_trunk_up(network, network->options.nswitches + leaf);
}

/* Neighbouring hosts share a leaf. */
static inline uint32_t mmc_leaf_of(const struct mmc_network *network,
				   uint32_t host)
{
	return (uint32_t)((uint64_t)host * network->options.nswitches /
			  network->options.nhosts);
}

/* Returns the first host of `leaf`, the least that mmc_leaf_of() maps to it. */
static inline uint32_t mmc_leaf_begin(const struct mmc_network *network,
				      uint32_t leaf)
{
	uint64_t product = (uint64_t)leaf * network->options.nhosts;
	uint32_t nswitches = network->options.nswitches;

	return (uint32_t)((product + nswitches - 1) / nswitches);
}

#endif
