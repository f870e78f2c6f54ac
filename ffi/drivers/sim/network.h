/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated network in virtual time, on a fabric of its user's, or on leaf switches
 * under a spine. Links are full-duplex: each direction has a rate, a latency, a queue of
 * bytes that drops what does not fit, and a probability of loss. A switch forwards a
 * datagram once it has received all of it, and copies a multicast to the other links of
 * the group's tree.
 *
 * Time passes only in mmc_network_next(), which jumps from event to event. Only one
 * thread may use a network.
 */
#ifndef MMC_DRIVERS_SIM_NETWORK_H
#define MMC_DRIVERS_SIM_NETWORK_H

#include "drivers/driver.h"
#include "drivers/sim/convoy.h"
#include "drivers/sim/fabric.h"
#include "drivers/sim/frame.h"
#include "drivers/sim/heap.h"
#include "drivers/sim/link.h"
#include "support/prng.h"

/*
 * The bytes of the headers that a datagram has on a link: Ethernet 14, IPv4 20, and UDP
 * 8. A capture on a host shows as many.
 */
#define MMC_FRAME_OVERHEAD_BYTES 42

/* The part of the network that carries nothing during an outage. */
enum mmc_outage_kind {
	MMC_OUTAGE_NONE,
	MMC_OUTAGE_MULTICAST, /* all multicast */
	MMC_OUTAGE_HOST,      /* both links between a host and its leaf */
	MMC_OUTAGE_LEAF, /* all links between a switch and other switches */
	MMC_OUTAGE_LINK, /* both directions of a link between switches */
	MMC_OUTAGE_COUNT,
};

struct mmc_outage {
	enum mmc_outage_kind kind;
	uint32_t
		place; /* the number of the host, switch or link that is cut off */
	uint64_t begin_ns;
	uint64_t end_ns;
};

/*
 * The options of a network. Probabilities are in parts of 2^32, as mmc_prng_chance()
 * takes them.
 */
struct mmc_network_options {
	uint32_t nhosts;
	/*
	 * A fabric of as many hosts or more, which outlives the network. NULL: leaves
	 * under a spine, as the next options say.
	 */
	const struct mmc_fabric *fabric;
	uint32_t nswitches;   /* leaves; 1: there is neither spine nor trunk */
	uint32_t link_mbits;  /* Mbit/s, up to MMC_FABRIC_MBITS_MAX */
	uint32_t trunk_mbits; /* Mbit/s, up to MMC_FABRIC_MBITS_MAX */
	uint32_t latency_ns;  /* of each link */
	/* The most that is added at random to the latency of links to hosts. */
	uint32_t jitter_ns;
	/*
	 * Whether latency and jitter differ between links: each link draws its own, up
	 * to the values above.
	 */
	bool uneven;
	uint64_t queue_bytes; /* of each switch port */
	uint32_t loss;	      /* on links from a leaf to a host */
	uint32_t uplink_loss; /* on all other links */
	uint32_t loss_period; /* of all links: see struct mmc_fabric_link */

	/* The rest concerns every fabric. */
	/*
	 * The most by which the way between switches is longer for one flow than for
	 * another: datagrams of one source, subgroup and peer are a flow.
	 */
	uint32_t detour_ns;
	uint32_t duplicate;   /* on links from a switch to a host */
	uint64_t deaf_hosts;  /* bit h: host h gets no multicast for a time */
	uint64_t deaf_ns;     /* when that time begins */
	uint64_t deaf_end_ns; /* when that time ends; 0: never */
	struct mmc_outage outage;
	uint32_t datagram_bytes_max;
	uint32_t head_bytes; /* of each datagram; all else is payload */
	/*
	 * How many bytes each byte of a chunk's payload stands for: links take as long
	 * as if the payload were so many times longer.
	 */
	uint32_t payload_scale;
	uint64_t seed;
};

/*
 * The kinds of events that mmc_network_next() reports: the arrivals of a frame and of a
 * convoy, and the timers of the network's user, who numbers them from MMC_NETWORK_TIMER
 * on.
 */
enum { MMC_NETWORK_ARRIVAL = 1, MMC_NETWORK_CONVOY, MMC_NETWORK_TIMER };

/*
 * A function that mmc_network_send() calls for each datagram, before the datagram is on
 * its way. Returns whether to send the datagram; otherwise it is dropped.
 */
typedef bool mmc_network_tap(void *context, const struct mmc_frame *frame);

struct mmc_network {
	struct mmc_network_options options;
	uint64_t now_ns;
	uint64_t nevents; /* how many events there were so far */
	struct mmc_heap heap;
	struct mmc_prng prng;
	struct mmc_frames frames;
	struct mmc_convoys convoys;
	struct mmc_fabric fabric;
	void *leaves;	 /* what to free of the fabric, if it is our own */
	uint32_t *reach; /* [ntrees * nlinks] hosts behind each link (tree.h) */
	struct mmc_link *links; /* in the order of the fabric's */
	uint32_t nlinks;
	mmc_network_tap *tap;	 /* may be NULL */
	void *tap_context;	 /* the first argument of `tap` */
	uint64_t lacked_chunks;	 /* see mmc_network_count_lacked() */
	uint64_t lacked_control; /* control messages not received */
	bool out_of_memory; /* some event was dropped: the run is invalid */
};

/*
 * Initializes a network, at time 0. Returns 0, -MMC_EINVAL if an option is out of
 * range, or -MMC_ENOMEM.
 */
int mmc_network_init(struct mmc_network *network,
		     const struct mmc_network_options *options);

/* Frees the network's memory, frames under way included. */
void mmc_network_free(struct mmc_network *network);

/* Returns the link from a host to its switch. */
struct mmc_link *mmc_network_uplink(struct mmc_network *network, uint32_t host);

/* Returns the link from its switch to a host. */
struct mmc_link *mmc_network_downlink(struct mmc_network *network,
				      uint32_t host);

/*
 * Sends one datagram from host `source`. The queue of a host's own uplink drops
 * nothing: to send no faster than the link, the host must wait as
 * mmc_network_unsent_ns() says.
 */
void mmc_network_send(struct mmc_network *network, uint32_t source,
		      const struct mmc_parcel *parcel);

/*
 * Returns how long an empty message takes over a connection from one host to another.
 * During an outage the message waits until the outage ends.
 */
uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to);

/*
 * Sends `nbytes` over a connection from one host to another. Connections lose nothing,
 * and no event reports the arrival, but the bytes keep the links busy as datagrams do.
 * Returns the time when they arrive.
 */
uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes);

/*
 * Returns how long from now on the queue of the uplink of `host` holds more than
 * `queue_bytes`.
 */
uint64_t mmc_network_unsent_ns(struct mmc_network *network, uint32_t host,
			       uint64_t queue_bytes);

/*
 * Sets a timer: mmc_network_next() reports an event of this `kind`, at least
 * MMC_NETWORK_TIMER, and with this `target` at `time_ns`, or now if that is past.
 */
void mmc_network_at(struct mmc_network *network, uint64_t time_ns,
		    uint32_t kind, uint32_t target);

/*
 * Advances the time to the next event and writes the event: a timer, or the arrival of
 * the frame `subject` at the host `target`, or of the convoy `subject` at the node
 * `target`. The caller gets a reference to the frame, or the convoy.
 * Returns false if no event is left.
 */
bool mmc_network_next(struct mmc_network *network, struct mmc_heap_item *event);

/*
 * Counts that `frame` was lost on its way to `nhosts` of the hosts that it is for. A
 * chunk that is multicast for the first time counts once for each of them. All else
 * counts once: a repair, for example, is for the few hosts that lack the chunk.
 */
void mmc_network_count_lacked(struct mmc_network *network,
			      const struct mmc_frame *frame, uint32_t nhosts);

/* Gives back a reference to `frame`. */
void mmc_network_release(struct mmc_network *network, struct mmc_frame *frame);

#endif
