/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections between hosts of the simulated network, which lose nothing. */
#include "drivers/sim/outage.h"
#include "drivers/sim/topology.h"

/* The most links on the way from one host to another. */
#define PATH_LINKS_MAX 4

/* Writes the indices of the links from one host to another. Returns their number. */
static unsigned path_of(const struct mmc_network *network, uint32_t from,
			uint32_t to, uint32_t *links)
{
	uint32_t leaf = mmc_leaf_of(network, from);
	uint32_t other = mmc_leaf_of(network, to);
	unsigned n = 0;

	links[n++] = mmc_link_from_host(from);
	if (leaf != other) {
		links[n++] = mmc_link_to_spine(network, leaf);
		links[n++] = mmc_link_from_spine(network, other);
	}
	links[n++] = mmc_link_to_host(network, to);
	return n;
}

uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to)
{
	uint32_t links[PATH_LINKS_MAX];

	return (uint64_t)path_of(network, from, to, links) *
		       network->options.latency_ns +
	       mmc_outage_left_ns(network, from, to);
}

uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes)
{
	uint32_t links[PATH_LINKS_MAX];
	unsigned nlinks = path_of(network, from, to, links);
	uint64_t at_ps =
		(network->now_ns + mmc_outage_left_ns(network, from, to)) *
		MMC_LINK_NS_PS;

	for (unsigned i = 0; i < nlinks; i++) {
		struct mmc_link *link = &network->links[links[i]];

		if (link->free_ps > at_ps)
			at_ps = link->free_ps;
		at_ps += nbytes * link->byte_ps;
		link->free_ps = at_ps;
		link->bytes += nbytes;
		at_ps += network->options.latency_ns * MMC_LINK_NS_PS;
	}
	return mmc_link_ps_to_ns(at_ps);
}
