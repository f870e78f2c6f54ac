/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says which hosts are connected to which leaf switch, and which index of a network's
 * `links` each link has. A link carries one direction. The array has the links from all
 * hosts to their leaves, then those back; if there is a spine, the links from all
 * leaves to the spine follow, then those back.
 */
#ifndef MMC_DRIVERS_SIM_TOPOLOGY_H
#define MMC_DRIVERS_SIM_TOPOLOGY_H

#include "drivers/sim/network.h"

/* Returns the index of the link from `host` to its leaf. */
static inline uint32_t mmc_link_from_host(uint32_t host)
{
	return host;
}

/* Returns the index of the link from its leaf to `host`. */
static inline uint32_t mmc_link_to_host(const struct mmc_network *network,
					uint32_t host)
{
	return network->options.nhosts + host;
}

/* Returns the index of the link from `leaf` to the spine. */
static inline uint32_t mmc_link_to_spine(const struct mmc_network *network,
					 uint32_t leaf)
{
	return 2 * network->options.nhosts + leaf;
}

/* Returns the index of the link from the spine to `leaf`. */
static inline uint32_t mmc_link_from_spine(const struct mmc_network *network,
					   uint32_t leaf)
{
	return 2 * network->options.nhosts + network->options.nswitches + leaf;
}

/* Returns the leaf of `host`. The hosts of a leaf have consecutive numbers. */
static inline uint32_t mmc_leaf_of(const struct mmc_network *network,
				   uint32_t host)
{
	return (uint32_t)((uint64_t)host * network->options.nswitches /
			  network->options.nhosts);
}

/*
 * Returns the first host of `leaf`. If `leaf` is the number of leaves, returns the
 * number of hosts.
 */
static inline uint32_t mmc_leaf_first_host(const struct mmc_network *network,
					   uint32_t leaf)
{
	uint64_t product = (uint64_t)leaf * network->options.nhosts;
	uint32_t nswitches = network->options.nswitches;

	return (uint32_t)((product + nswitches - 1) / nswitches);
}

#endif
