/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic over connections of the simulated network, which lose nothing. */
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

/*
 * Returns how long a connection between two hosts must wait for the end of an outage.
 */
static uint64_t outage_left_ns(const struct mmc_network *network, uint32_t from,
			       uint32_t to)
{
	const struct mmc_outage *outage = &network->options.outage;
	uint32_t leaf = mmc_leaf_of(network, from);
	uint32_t other = mmc_leaf_of(network, to);
	bool cut = false;

	if (outage->kind == MMC_OUTAGE_HOST)
		cut = from == outage->place || to == outage->place;
	else if (outage->kind == MMC_OUTAGE_LEAF)
		cut = leaf != other &&
		      (leaf == outage->place || other == outage->place);
	if (!cut || network->now_ns < outage->begin_ns ||
	    network->now_ns >= outage->end_ns)
		return 0;
	return outage->end_ns - network->now_ns;
}

uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to)
{
	uint32_t links[4];

	return (uint64_t)path_of(network, from, to, links) *
		       network->options.latency_ns +
	       outage_left_ns(network, from, to);
}

uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes)
{
	uint32_t links[4];
	unsigned nlinks = path_of(network, from, to, links);
	uint64_t at_ps = network->now_ns * 1000 +
			 outage_left_ns(network, from, to) * 1000;

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
