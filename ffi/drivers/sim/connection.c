/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections between hosts of the simulated network, which lose nothing. */
#include "drivers/sim/fabric.h"
#include "drivers/sim/outage.h"

/* Writes the links from one host to another. Returns their number. */
static uint32_t path_of(const struct mmc_network *network, uint32_t from,
			uint32_t to, uint32_t *links)
{
	const struct mmc_journey journey = { from, to };

	return mmc_fabric_path(&network->fabric, journey, network->options.seed,
			       network->links, links);
}

uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to)
{
	uint32_t links[MMC_PATH_LINKS_MAX];
	uint32_t nlinks = path_of(network, from, to, links);
	uint64_t reach_ns = mmc_outage_left_ns(network, links, nlinks);

	for (uint32_t i = 0; i < nlinks; i++)
		reach_ns += network->fabric.links[links[i]].latency_ns;
	return reach_ns;
}

uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes)
{
	uint32_t links[MMC_PATH_LINKS_MAX];
	uint32_t nlinks = path_of(network, from, to, links);
	uint64_t at_ps =
		(network->now_ns + mmc_outage_left_ns(network, links, nlinks)) *
		MMC_LINK_NS_PS;

	for (uint32_t i = 0; i < nlinks; i++) {
		struct mmc_link *link = &network->links[links[i]];

		if (link->free_ps > at_ps)
			at_ps = link->free_ps;
		at_ps += nbytes * link->byte_ps;
		link->free_ps = at_ps;
		link->bytes += nbytes;
		at_ps += network->fabric.links[links[i]].latency_ns *
			 MMC_LINK_NS_PS;
	}
	return mmc_link_ps_to_ns(at_ps);
}
