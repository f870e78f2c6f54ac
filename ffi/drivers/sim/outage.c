/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/outage.h"

#include "drivers/sim/fabric.h"

/*
 * Returns whether this is a multicast on its last link, to a host that is deaf at this
 * time.
 */
static bool is_unheard(const struct mmc_network *network,
		       const struct mmc_heap_item *event,
		       const struct mmc_frame *frame)
{
	const struct mmc_network_options *options = &network->options;
	uint32_t host = event->target - network->fabric.nhosts;

	return frame->peer == MMC_PEER_ALL && host < network->fabric.nhosts &&
	       event->time_ns >= options->deaf_ns &&
	       (options->deaf_end_ns == 0 ||
		event->time_ns < options->deaf_end_ns) &&
	       host < 64 && (options->deaf_hosts >> host & 1) != 0;
}

/* Returns whether two links are the two directions of one, or the same. */
static bool is_same_link(const struct mmc_fabric *fabric, uint32_t one,
			 uint32_t other)
{
	const struct mmc_fabric_link *a = &fabric->links[one];
	const struct mmc_fabric_link *b = &fabric->links[other];
	uint32_t nahead = 0;

	if (one == other || a->from != b->to || a->to != b->from)
		return one == other;
	/* Of several links between two switches, the n-th ones belong together. */
	for (uint32_t i = 0; i < one; i++)
		nahead += fabric->links[i].from == a->from &&
			  fabric->links[i].to == a->to;
	for (uint32_t i = 0; i < other; i++)
		nahead -= fabric->links[i].from == b->from &&
			  fabric->links[i].to == b->to;
	return nahead == 0;
}

/* Returns whether a link carries nothing during an outage; multicast aside. */
static bool is_cut(const struct mmc_network *network, uint32_t link)
{
	const struct mmc_outage *outage = &network->options.outage;
	const struct mmc_fabric *fabric = &network->fabric;
	uint32_t leaf = fabric->nhosts + outage->place;

	switch (outage->kind) {
	case MMC_OUTAGE_HOST:
		return link == outage->place ||
		       link == fabric->nhosts + outage->place;
	case MMC_OUTAGE_LEAF:
		return mmc_fabric_is_inner(fabric, link) &&
		       (fabric->links[link].from == leaf ||
			fabric->links[link].to == leaf);
	case MMC_OUTAGE_LINK:
		return is_same_link(fabric, link, outage->place);
	default:
		return false;
	}
}

/* Returns whether there is an outage at this time. */
static bool is_out(const struct mmc_network *network, uint64_t time_ns)
{
	const struct mmc_outage *outage = &network->options.outage;

	return time_ns >= outage->begin_ns && time_ns < outage->end_ns;
}

bool mmc_outage_takes(const struct mmc_network *network,
		      const struct mmc_heap_item *event,
		      const struct mmc_frame *frame)
{
	bool silent = network->options.outage.kind == MMC_OUTAGE_MULTICAST &&
		      frame->peer == MMC_PEER_ALL &&
		      event->target < network->fabric.nhosts;

	return is_unheard(network, event, frame) ||
	       (is_out(network, event->time_ns) &&
		(silent || is_cut(network, event->target)));
}

uint64_t mmc_outage_left_ns(const struct mmc_network *network,
			    const uint32_t *links, uint32_t nlinks)
{
	bool cut = false;

	if (!is_out(network, network->now_ns))
		return 0;
	for (uint32_t i = 0; i < nlinks; i++)
		cut |= is_cut(network, links[i]);
	return cut ? network->options.outage.end_ns - network->now_ns : 0;
}
