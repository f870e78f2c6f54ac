/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic over connections of the simulated network, which lose nothing. */
#include "drivers/sim/outage.h"
#include "drivers/sim/topology.h"

/* Writes the links from one host to another, four at most. Returns their number. */
static unsigned path_of(const struct mmc_network *network, uint32_t from,
			uint32_t to, uint32_t *links)
{
	uint32_t leaf = mmc_leaf_of(network, from);
	uint32_t other = mmc_leaf_of(network, to);
	unsigned n = 0;

	links[n++] = from;
	if (leaf != other) {
		links[n++] = mmc_trunk_up(network, leaf);
		links[n++] = mmc_trunk_down(network, other);
	}
	links[n++] = network->options.nhosts + to;
	return n;
}

uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to)
{
	uint32_t links[4];

	return (uint64_t)path_of(network, from, to, links) *
		       network->options.latency_ns +
	       mmc_outage_left_ns(network, from, to);
}

uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes)
{
	uint32_t links[4];
	unsigned nlinks = path_of(network, from, to, links);
	uint64_t at_ps = network->now_ns * 1000 +
			 mmc_outage_left_ns(network, from, to) * 1000;

	for (unsigned i = 0; i < nlinks; i++) {
		struct mmc_link *link = &network->links[links[i]];

		if (link->free_ps > at_ps)
			at_ps = link->free_ps;
		at_ps += nbytes * link->byte_ps;
		link->free_ps = at_ps;
		link->bytes += nbytes;
		at_ps += network->options.latency_ns * UINT64_C(1000);
	}
	return (at_ps + 999) / 1000;
}
