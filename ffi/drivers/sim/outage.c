/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/outage.h"

#include "drivers/sim/topology.h"

/*
 * Returns whether this is a multicast on its last link, to a host that is deaf at this
 * time.
 */
static bool is_unheard(const struct mmc_network *network,
		       const struct mmc_heap_item *event,
		       const struct mmc_frame *frame)
{
	const struct mmc_network_options *options = &network->options;
	uint32_t host = event->target - options->nhosts;

	return frame->peer == MMC_PEER_ALL && host < options->nhosts &&
	       event->time_ns >= options->deaf_ns &&
	       (options->deaf_end_ns == 0 ||
		event->time_ns < options->deaf_end_ns) &&
	       host < 64 && (options->deaf_hosts >> host & 1) != 0;
}

/* Returns whether a frame comes out of a link that carries nothing at this time. */
static bool is_cut(const struct mmc_network *network,
		   const struct mmc_heap_item *event,
		   const struct mmc_frame *frame)
{
	const struct mmc_outage *outage = &network->options.outage;
	uint32_t link = event->target;

	if (event->time_ns < outage->begin_ns ||
	    event->time_ns >= outage->end_ns)
		return false;
	switch (outage->kind) {
	case MMC_OUTAGE_MULTICAST:
		return frame->peer == MMC_PEER_ALL &&
		       link < network->options.nhosts;
	case MMC_OUTAGE_HOST:
		return link == mmc_link_from_host(outage->place) ||
		       link == mmc_link_to_host(network, outage->place);
	case MMC_OUTAGE_LEAF:
		return network->options.nswitches > 1 &&
		       (link == mmc_link_to_spine(network, outage->place) ||
			link == mmc_link_from_spine(network, outage->place));
	default:
		return false;
	}
}

bool mmc_outage_takes(const struct mmc_network *network,
		      const struct mmc_heap_item *event,
		      const struct mmc_frame *frame)
{
	return is_unheard(network, event, frame) ||
	       is_cut(network, event, frame);
}

uint64_t mmc_outage_left_ns(const struct mmc_network *network, uint32_t from,
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
