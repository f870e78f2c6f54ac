/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/network.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/outage.h"
#include "drivers/sim/topology.h"
#include "support/assert.h"

/* The kind of an event: a frame comes out of the link whose index is the target. */
enum { KIND_FRAME = 0 };

static bool rate_is_possible(uint32_t mbits)
{
	return mbits > 0 && mbits <= MMC_LINK_MBITS_MAX;
}

/* Returns a link as the options describe it; `last` if it leads to a host. */
static struct mmc_link make_link(const struct mmc_network_options *options,
				 uint32_t mbits, bool last)
{
	return (struct mmc_link){
		.byte_ps = mmc_link_byte_ps(mbits),
		.queue_bytes = options->queue_bytes,
		.loss = last ? options->loss : options->uplink_loss,
		.duplicate = last ? options->duplicate : 0,
		.latency_ns = options->latency_ns,
		.jitter_ns = last ? options->jitter_ns : 0,
	};
}

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

int mmc_network_init(struct mmc_network *network,
		     const struct mmc_network_options *options)
{
	uint32_t nhosts = options->nhosts;
	uint32_t ntrunks = options->nswitches > 1 ? 2 * options->nswitches : 0;

	if (nhosts == 0 || options->nswitches == 0 ||
	    options->nswitches > nhosts ||
	    !rate_is_possible(options->link_mbits) ||
	    !rate_is_possible(options->trunk_mbits) ||
	    options->payload_scale == 0)
		return -MMC_EINVAL;
	*network = (struct mmc_network){
		.options = *options,
		.prng = { .state = options->seed },
		.nlinks = 2 * nhosts + ntrunks,
	};
	network->links = malloc(network->nlinks * sizeof(*network->links));
	if (!network->links)
		return -MMC_ENOMEM;
	for (uint32_t i = 0; i < network->nlinks; i++) {
		uint32_t mbits = i < 2 * nhosts ? options->link_mbits
						: options->trunk_mbits;

		network->links[i] = make_link(options, mbits,
					      i >= nhosts && i < 2 * nhosts);
		if (i < nhosts)
			network->links[i].queue_bytes = UINT64_MAX;
	}
	if (options->uneven)
		draw_links(network);
	return 0;
}

void mmc_network_free(struct mmc_network *network)
{
	struct mmc_heap_item item;

	while (mmc_heap_pop(&network->heap, &item))
		if (item.kind == KIND_FRAME)
			mmc_network_release(network, item.subject);
	mmc_frames_free(&network->frames);
	mmc_heap_free(&network->heap);
	free(network->links);
	network->links = NULL;
}

struct mmc_link *mmc_network_uplink(struct mmc_network *network, uint32_t host)
{
	return &network->links[mmc_link_from_host(host)];
}

struct mmc_link *mmc_network_downlink(struct mmc_network *network,
				      uint32_t host)
{
	return &network->links[mmc_link_to_host(network, host)];
}

/* Adds an event, or drops it, and its frame, if memory has run out. */
static void schedule(struct mmc_network *network,
		     const struct mmc_heap_item *item)
{
	if (mmc_heap_push(&network->heap, item) == 0)
		return;
	network->out_of_memory = true;
	if (item->kind == KIND_FRAME)
		mmc_network_release(network, item->subject);
}

void mmc_network_at(struct mmc_network *network, uint64_t time_ns,
		    uint32_t kind, uint32_t target)
{
	MMC_ASSERT(kind >= MMC_NETWORK_TIMER);
	schedule(network,
		 &(struct mmc_heap_item){
			 .time_ns = time_ns > network->now_ns ? time_ns
							      : network->now_ns,
			 .kind = kind,
			 .target = target,
		 });
}

/* Returns how many hosts a multicast reaches by way of a link. */
static uint32_t nhosts_behind(const struct mmc_network *network,
			      uint32_t link_index)
{
	uint32_t nhosts = network->options.nhosts;
	uint32_t nswitches = network->options.nswitches;
	uint32_t leaf;
	uint32_t nlocal;

	if (link_index < 2 * nhosts)
		return link_index < nhosts ? nhosts - 1 : 1;
	leaf = (link_index - 2 * nhosts) % nswitches;
	nlocal = mmc_leaf_first_host(network, leaf + 1) -
		 mmc_leaf_first_host(network, leaf);
	return link_index < mmc_link_from_spine(network, 0) ? nhosts - nlocal
							    : nlocal;
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
	schedule(network, &(struct mmc_heap_item){
				  .time_ns = time_ns,
				  .kind = KIND_FRAME,
				  .target = link_index,
				  .subject = frame,
			  });
}

/*
 * Returns how much longer the route of a frame's flow over the spine is than the
 * shortest one; 0 on links that do not lead to the spine.
 */
static uint64_t detour_ns(const struct mmc_network *network,
			  uint32_t link_index, const struct mmc_frame *frame)
{
	struct mmc_prng flow = {
		.state = network->options.seed ^ (uint64_t)frame->source << 40 ^
			 (uint64_t)frame->subgroup << 32 ^ frame->peer,
	};

	if (network->options.detour_ns == 0 ||
	    link_index < mmc_link_to_spine(network, 0) ||
	    link_index >= mmc_link_from_spine(network, 0))
		return 0;
	return mmc_prng_below(&flow, network->options.detour_ns);
}

/* Sends a frame over a link, whose queue may drop it. */
static void enter_link(struct mmc_network *network, uint32_t link_index,
		       struct mmc_frame *frame)
{
	struct mmc_link *link = &network->links[link_index];
	uint64_t frame_bytes = frame->scaled_bytes + MMC_FRAME_OVERHEAD_BYTES;
	uint64_t out_ns;

	if (!mmc_link_enter(link, frame_bytes, network->now_ns, &out_ns)) {
		mmc_network_count_lacked(network, frame,
					 nhosts_behind(network, link_index));
		return;
	}
	out_ns += link->latency_ns + detour_ns(network, link_index, frame);
	fly(network, link_index, frame, out_ns);
	if (link->duplicate > 0 &&
	    mmc_prng_chance(&network->prng, link->duplicate)) {
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
		enter_link(network, mmc_link_from_host(source), frame);
	mmc_network_release(network, frame);
}

uint64_t mmc_network_unsent_ns(struct mmc_network *network, uint32_t host,
			       uint64_t queue_bytes)
{
	return mmc_link_busy_ns(mmc_network_uplink(network, host), queue_bytes,
				network->now_ns);
}

/* Forwards a frame from a leaf to those of its hosts that it is for. */
static void forward_down(struct mmc_network *network, uint32_t leaf,
			 struct mmc_frame *frame)
{
	uint32_t end = mmc_leaf_first_host(network, leaf + 1);

	if (frame->peer != MMC_PEER_ALL) {
		enter_link(network, mmc_link_to_host(network, frame->peer),
			   frame);
		return;
	}
	for (uint32_t host = mmc_leaf_first_host(network, leaf); host < end;
	     host++)
		if (host != frame->source)
			enter_link(network, mmc_link_to_host(network, host),
				   frame);
}

/* Forwards a frame from the spine to the leaves that it is for. */
static void forward_spine(struct mmc_network *network, struct mmc_frame *frame)
{
	uint32_t from = mmc_leaf_of(network, frame->source);

	if (frame->peer != MMC_PEER_ALL) {
		uint32_t leaf = mmc_leaf_of(network, frame->peer);

		enter_link(network, mmc_link_from_spine(network, leaf), frame);
		return;
	}
	for (uint32_t leaf = 0; leaf < network->options.nswitches; leaf++)
		if (leaf != from)
			enter_link(network, mmc_link_from_spine(network, leaf),
				   frame);
}

/* Forwards a frame that has reached a switch by a link. */
static void forward(struct mmc_network *network, uint32_t link_index,
		    struct mmc_frame *frame)
{
	uint32_t first_from_spine = mmc_link_from_spine(network, 0);
	uint32_t leaf = mmc_leaf_of(network, frame->source);
	bool all = frame->peer == MMC_PEER_ALL;

	if (link_index >= first_from_spine) {
		forward_down(network, link_index - first_from_spine, frame);
		return;
	}
	if (link_index >= mmc_link_to_spine(network, 0)) {
		forward_spine(network, frame);
		return;
	}
	if (all || mmc_leaf_of(network, frame->peer) == leaf)
		forward_down(network, leaf, frame);
	if (network->options.nswitches > 1 &&
	    (all || mmc_leaf_of(network, frame->peer) != leaf))
		enter_link(network, mmc_link_to_spine(network, leaf), frame);
}

/*
 * Handles a frame that comes out of a link: it is lost, forwarded, or has arrived at a
 * host. Returns whether it has arrived; `event` then reports the arrival.
 */
static bool leave_link(struct mmc_network *network, struct mmc_heap_item *event)
{
	uint32_t nhosts = network->options.nhosts;
	struct mmc_link *link = &network->links[event->target];
	struct mmc_frame *frame = event->subject;

	if ((link->loss > 0 && mmc_prng_chance(&network->prng, link->loss)) ||
	    mmc_outage_takes(network, event, frame)) {
		link->lost++;
		mmc_network_count_lacked(network, frame,
					 nhosts_behind(network, event->target));
	} else {
		link->delivered++;
		if (event->target >= nhosts && event->target < 2 * nhosts) {
			event->kind = MMC_NETWORK_ARRIVAL;
			event->target -= nhosts;
			return true;
		}
		forward(network, event->target, frame);
	}
	mmc_network_release(network, frame);
	return false;
}

bool mmc_network_next(struct mmc_network *network, struct mmc_heap_item *event)
{
	while (mmc_heap_pop(&network->heap, event)) {
		MMC_ASSERT(event->time_ns >= network->now_ns);
		network->now_ns = event->time_ns;
		network->nevents++;
		if (event->kind != KIND_FRAME || leave_link(network, event))
			return true;
	}
	return false;
}
