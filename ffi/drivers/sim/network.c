/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/network.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/events.h"
#include "drivers/sim/leaves.h"
#include "drivers/sim/outage.h"
#include "drivers/sim/transit.h"
#include "drivers/sim/tree.h"
#include "support/assert.h"

/* Draws a latency and a jitter for each link, up to its present ones. */
static void draw_links(struct mmc_network *network)
{
	for (uint32_t i = 0; i < network->nlinks; i++) {
		struct mmc_link *link = &network->links[i];

		link->latency_ns = (uint32_t)mmc_prng_below(
			&network->prng, UINT64_C(1) + link->latency_ns);
		link->jitter_ns = (uint32_t)mmc_prng_below(
			&network->prng, UINT64_C(1) + link->jitter_ns);
	}
}

/* Takes the fabric of the options, or describes their leaves and spine. */
static int choose_fabric(struct mmc_network *network)
{
	const struct mmc_network_options *options = &network->options;
	int rv;

	if (options->fabric) {
		network->fabric = *options->fabric;
		return options->nhosts > 0 &&
				       options->nhosts <= network->fabric.nhosts
			       ? mmc_fabric_check(&network->fabric)
			       : -MMC_EINVAL;
	}
	rv = mmc_leaves_build(options, &network->fabric);
	if (rv < 0)
		return rv;
	network->leaves = (void *)(uintptr_t)network->fabric.links;
	return mmc_fabric_check(&network->fabric);
}

static int open_links(struct mmc_network *network)
{
	const struct mmc_fabric *fabric = &network->fabric;

	network->nlinks = fabric->nlinks;
	network->links = malloc(network->nlinks * sizeof(*network->links));
	network->reach = calloc((size_t)fabric->ntrees * fabric->nlinks,
				sizeof(*network->reach));
	if (!network->links || !network->reach)
		return -MMC_ENOMEM;
	for (uint32_t i = 0; i < network->nlinks; i++) {
		network->links[i] = mmc_link_make(&fabric->links[i]);
		if (i < fabric->nhosts)
			network->links[i].queue_bytes = UINT64_MAX;
	}
	return mmc_trees_measure(fabric, network->reach);
}

int mmc_network_init(struct mmc_network *network,
		     const struct mmc_network_options *options)
{
	int rv;

	*network = (struct mmc_network){
		.options = *options,
		.prng = { .state = options->seed },
	};
	if (options->payload_scale == 0)
		return -MMC_EINVAL;
	rv = choose_fabric(network);
	if (rv == 0)
		rv = open_links(network);
	if (rv < 0)
		mmc_network_free(network);
	else if (options->uneven)
		draw_links(network);
	return rv;
}

void mmc_network_free(struct mmc_network *network)
{
	mmc_events_free(network);
	mmc_frames_free(&network->frames);
	mmc_convoys_free(&network->convoys);
	free(network->links);
	free(network->reach);
	free(network->leaves);
	network->links = NULL;
	network->reach = NULL;
	network->leaves = NULL;
}

struct mmc_link *mmc_network_uplink(struct mmc_network *network, uint32_t host)
{
	return &network->links[host];
}

struct mmc_link *mmc_network_downlink(struct mmc_network *network,
				      uint32_t host)
{
	return &network->links[network->fabric.nhosts + host];
}

void mmc_network_at(struct mmc_network *network, uint64_t time_ns,
		    uint32_t kind, uint32_t target)
{
	MMC_ASSERT(kind >= MMC_NETWORK_TIMER);
	mmc_events_add(network, &(struct mmc_heap_item){
					.time_ns = time_ns > network->now_ns
							   ? time_ns
							   : network->now_ns,
					.kind = kind,
					.target = target,
				});
}

static uint32_t tree_of(const struct mmc_network *network,
			const struct mmc_frame *frame)
{
	return frame->subgroup % network->fabric.ntrees;
}

/* Returns how many hosts a multicast reaches by way of a link. */
static uint32_t nhosts_behind(const struct mmc_network *network, uint32_t link,
			      const struct mmc_frame *frame)
{
	return network->reach[(size_t)tree_of(network, frame) *
				      network->fabric.nlinks +
			      link];
}

void mmc_network_count_lacked(struct mmc_network *network,
			      const struct mmc_frame *frame, uint32_t nhosts)
{
	bool all = frame->peer == MMC_PEER_ALL;

	if (frame->traffic == MMC_TRAFFIC_CONTROL)
		network->lacked_control++;
	else if (frame->traffic == MMC_TRAFFIC_REPAIR || !all)
		network->lacked_chunks++;
	else
		network->lacked_chunks += nhosts;
}

/*
 * Schedules that a copy of `frame` comes out of the link at `time_ns`, or later by up
 * to the link's jitter.
 */
static void fly(struct mmc_network *network, uint32_t link_index,
		struct mmc_frame *frame, uint64_t time_ns)
{
	uint32_t jitter_ns = network->links[link_index].jitter_ns;

	if (jitter_ns > 0)
		time_ns += mmc_prng_below(&network->prng, jitter_ns);
	frame->references++;
	mmc_events_add(network, &(struct mmc_heap_item){
					.time_ns = time_ns,
					.kind = MMC_EVENTS_FRAME,
					.target = link_index,
					.subject = frame,
				});
}

/*
 * Returns how much longer the route of a frame's flow between switches is than the
 * shortest one; 0 on all its links but the first between switches.
 */
static uint64_t detour_ns(const struct mmc_network *network,
			  uint32_t link_index, const struct mmc_frame *frame)
{
	const struct mmc_fabric *fabric = &network->fabric;
	struct mmc_prng flow = {
		.state = network->options.seed ^ (uint64_t)frame->source << 40 ^
			 (uint64_t)frame->subgroup << 32 ^ frame->peer,
	};

	if (network->options.detour_ns == 0 ||
	    !mmc_fabric_is_inner(fabric, link_index) ||
	    fabric->links[link_index].from != fabric->links[frame->source].to)
		return 0;
	return mmc_prng_below(&flow, network->options.detour_ns);
}

/* Sends a frame over a link, whose queue may drop it. */
static void enter_link(struct mmc_network *network, uint32_t link_index,
		       struct mmc_frame *frame)
{
	struct mmc_link *link = &network->links[link_index];
	uint64_t frame_bytes = frame->scaled_bytes + MMC_FRAME_OVERHEAD_BYTES;
	bool last = network->fabric.links[link_index].to <
		    network->fabric.nhosts;
	uint64_t out_ns;

	if (!mmc_link_enter(link, frame_bytes, network->now_ns, &out_ns)) {
		mmc_network_count_lacked(network, frame,
					 nhosts_behind(network, link_index,
						       frame));
		return;
	}
	link->kind_bytes[frame->traffic] += frame_bytes;
	out_ns += link->latency_ns + detour_ns(network, link_index, frame);
	fly(network, link_index, frame, out_ns);
	if (last && network->options.duplicate > 0 &&
	    mmc_prng_chance(&network->prng, network->options.duplicate)) {
		link->duplicated++;
		fly(network, link_index, frame, out_ns);
	}
}

void mmc_network_release(struct mmc_network *network, struct mmc_frame *frame)
{
	mmc_frames_release(&network->frames, frame);
}

/*
 * Returns the bytes that a datagram of `nbytes` stands for: each byte of a chunk's
 * payload counts `payload_scale` times.
 */
static uint32_t scaled_bytes(const struct mmc_network *network,
			     enum mmc_traffic traffic, uint32_t nbytes)
{
	uint32_t head_bytes = network->options.head_bytes;

	if (traffic == MMC_TRAFFIC_CONTROL || nbytes < head_bytes)
		return nbytes;
	return head_bytes +
	       (nbytes - head_bytes) * network->options.payload_scale;
}

void mmc_network_send(struct mmc_network *network, uint32_t source,
		      const struct mmc_parcel *parcel)
{
	uint32_t nbytes = parcel->head_bytes + parcel->body_bytes;
	struct mmc_frame *frame = mmc_frames_take(
		&network->frames, network->options.datagram_bytes_max);

	if (!frame) {
		network->out_of_memory = true;
		return;
	}
	MMC_ASSERT(nbytes <= network->options.datagram_bytes_max);
	MMC_ASSERT(parcel->head_bytes >= MMC_HEADER_BYTES);
	MMC_ASSERT(parcel->peer == MMC_PEER_ALL ||
		   parcel->peer < network->options.nhosts);
	memcpy(frame->bytes, parcel->head, parcel->head_bytes);
	if (parcel->body_bytes > 0)
		memcpy(frame->bytes + parcel->head_bytes, parcel->body,
		       parcel->body_bytes);
	frame->source = source;
	frame->peer = parcel->peer;
	frame->subgroup = parcel->subgroup;
	frame->control = parcel->control;
	frame->traffic =
		mmc_header_traffic(mmc_header_peek(frame->bytes).index);
	frame->nbytes = nbytes;
	frame->scaled_bytes = scaled_bytes(network, frame->traffic, nbytes);
	if (!network->tap || network->tap(network->tap_context, frame))
		enter_link(network, source, frame);
	mmc_network_release(network, frame);
}

uint64_t mmc_network_unsent_ns(struct mmc_network *network, uint32_t host,
			       uint64_t queue_bytes)
{
	return mmc_link_busy_ns(mmc_network_uplink(network, host), queue_bytes,
				network->now_ns);
}

/* Copies a multicast from a switch to all links of its tree but the way back. */
static void forward_to_all(struct mmc_network *network, uint32_t link_index,
			   struct mmc_frame *frame)
{
	const struct mmc_fabric *fabric = &network->fabric;
	uint32_t came_from = fabric->links[link_index].from;
	uint32_t place = tree_of(network, frame) * fabric->nswitches +
			 fabric->links[link_index].to - fabric->nhosts;
	uint32_t end = fabric->tree_first[place + 1];

	for (uint32_t k = fabric->tree_first[place]; k < end; k++)
		if (fabric->links[fabric->tree_links[k]].to != came_from)
			enter_link(network, fabric->tree_links[k], frame);
}

/* Forwards a frame that has reached a switch by a link. */
static void forward(struct mmc_network *network, uint32_t link_index,
		    struct mmc_frame *frame)
{
	const struct mmc_journey journey = { frame->source, frame->peer };

	if (frame->peer == MMC_PEER_ALL)
		forward_to_all(network, link_index, frame);
	else
		enter_link(network,
			   mmc_fabric_next_link(
				   &network->fabric,
				   network->fabric.links[link_index].to,
				   journey, network->options.seed,
				   network->links),
			   frame);
}

/*
 * Handles a frame that comes out of a link: it is lost, forwarded, or has arrived at a
 * host. Returns whether it has arrived; `event` then reports the arrival.
 */
static bool leave_link(struct mmc_network *network, struct mmc_heap_item *event)
{
	uint32_t nhosts = network->fabric.nhosts;
	struct mmc_link *link = &network->links[event->target];
	struct mmc_frame *frame = event->subject;

	if ((link->losses.next > 0 &&
	     mmc_gilbert_loses(&link->losses, &network->prng)) ||
	    mmc_outage_takes(network, event, frame)) {
		link->lost++;
		mmc_network_count_lacked(network, frame,
					 nhosts_behind(network, event->target,
						       frame));
	} else {
		link->delivered++;
		if (event->target < nhosts ||
		    mmc_fabric_is_inner(&network->fabric, event->target)) {
			forward(network, event->target, frame);
		} else if (event->target - nhosts < network->options.nhosts) {
			event->kind = MMC_NETWORK_ARRIVAL;
			event->target -= nhosts;
			return true;
		}
	}
	mmc_network_release(network, frame);
	return false;
}

/* Handles an event of the network itself. Returns whether its user sees it as well. */
static bool handle(struct mmc_network *network, struct mmc_heap_item *event)
{
	if (event->kind == MMC_EVENTS_FRAME)
		return leave_link(network, event);
	if (event->kind != MMC_NETWORK_CONVOY)
		return true;
	if (!mmc_transit_reach(network, event->subject, event->target))
		return false;
	event->target = network->fabric.links[event->target].to;
	return true;
}

bool mmc_network_next(struct mmc_network *network, struct mmc_heap_item *event)
{
	while (mmc_heap_pop(&network->heap, event)) {
		MMC_ASSERT(event->time_ns >= network->now_ns);
		network->now_ns = event->time_ns;
		network->nevents++;
		if (handle(network, event))
			return true;
	}
	return false;
}
