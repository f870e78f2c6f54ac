/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/transit.h"

#include "drivers/sim/events.h"

/*
 * Sends a convoy over the next link. The event comes when the first packet is at the
 * other end, or the last one if that end is the goal. Returns when the last packet will
 * have left this end.
 */
static uint64_t go_on(struct mmc_network *network, struct mmc_convoy *convoy,
		      uint32_t at)
{
	uint32_t link =
		mmc_fabric_next_link(&network->fabric, at, convoy->journey,
				     network->options.seed, network->links);
	bool arrives = network->fabric.links[link].to == convoy->journey.to;
	uint32_t latency_ns = network->links[link].latency_ns;
	uint64_t left_ns;
	uint64_t first_ns;

	mmc_link_enter_convoy(&network->links[link], &convoy->packets,
			      network->now_ns, &first_ns);
	left_ns = convoy->packets.last_ns;
	convoy->packets.last_ns += latency_ns;
	mmc_events_add(network,
		       &(struct mmc_heap_item){
			       .time_ns = arrives ? convoy->packets.last_ns
						  : first_ns + latency_ns,
			       .kind = MMC_NETWORK_CONVOY,
			       .target = link,
			       .subject = convoy,
		       });
	return left_ns;
}

uint64_t mmc_transit_send(struct mmc_network *network,
			  const struct mmc_convoy *convoy)
{
	struct mmc_convoy *sent = mmc_convoys_take(&network->convoys);

	if (!sent) {
		network->out_of_memory = true;
		return network->now_ns;
	}
	*sent = *convoy;
	sent->packets.last_ns = network->now_ns;
	return go_on(network, sent, convoy->journey.from);
}

bool mmc_transit_reach(struct mmc_network *network, struct mmc_convoy *convoy,
		       uint32_t link)
{
	uint32_t node = network->fabric.links[link].to;

	if (node == convoy->journey.to)
		return true;
	go_on(network, convoy, node);
	return false;
}
