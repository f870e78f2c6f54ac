/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated network in virtual time. Hosts hang on leaf switches by full-duplex
 * links; two or more leaves hang on a spine by trunks. A link has a rate, a latency, a
 * queue of bytes that drops what does not fit, and a probability of loss. Switches
 * store, forward, and replicate multicast to all hosts but the sender.
 *
 * Time passes only in mmc_network_next(), from event to event. Only one thread uses a
 * network.
 */
#ifndef MMC_DRIVERS_SIM_NETWORK_H
#define MMC_DRIVERS_SIM_NETWORK_H

#include "drivers/driver.h"
#include "drivers/sim/frame.h"
#include "drivers/sim/heap.h"
#include "drivers/sim/link.h"
#include "support/prng.h"

/*
 * The bytes that a datagram takes on a link beside its own: Ethernet 14, IPv4 20 and
 * UDP 8, as a capture on the host shows them.
 */
#define MMC_FRAME_OVERHEAD_BYTES 42

/*
 * The part that carries nothing for a time: multicast, or a host's or a leaf's uplink.
 */
enum mmc_outage_kind {
	MMC_OUTAGE_NONE,
	MMC_OUTAGE_MULTICAST,
	MMC_OUTAGE_HOST,
	MMC_OUTAGE_LEAF,
	MMC_OUTAGE_COUNT,
};

struct mmc_outage {
	enum mmc_outage_kind kind;
	uint32_t place; /* the host or leaf that is cut off */
	uint64_t begin_ns;
	uint64_t end_ns;
};

/*
 * The options of a network. Probabilities are in parts of 2^32, as mmc_prng_chance()
 * takes them.
 */
struct mmc_network_options {
	uint32_t nhosts;
	uint32_t nswitches;  /* leaves; 1: no spine, no trunks */
	uint32_t link_mbits; /* Mbit/s, up to MMC_LINK_MBITS_MAX */
	uint32_t trunk_mbits;
	uint32_t latency_ns; /* of each link */
	uint32_t jitter_ns;  /* added at random on the last link: reorders */
	bool uneven; /* each link draws latency and jitter, up to those */
	/*
	 * A flow takes one of several routes over the spine, which differ by up to
	 * this.
	 */
	uint32_t detour_ns;
	uint64_t queue_bytes; /* of each switch port */
	uint64_t loss;	      /* on the link from a switch to a host */
	uint64_t uplink_loss; /* on the other links: lost to all behind */
	uint64_t duplicate;   /* on the link from a switch to a host */
	uint64_t deaf_hosts;  /* bit h: host h gets no multicast */
	uint64_t deaf_ns;     /* when they stop getting it */
	uint64_t deaf_end_ns; /* when they get it again; 0: never */
	struct mmc_outage outage;
	uint32_t datagram_bytes_max;
	uint32_t head_bytes;	/* of each datagram; all else is payload */
	uint32_t payload_scale; /* bytes that one byte of a chunk stands for */
	uint64_t seed;
};

/*
 * The kinds that mmc_network_next() reports: arrivals, and the caller's timers from
 * MMC_NETWORK_TIMER on.
 */
enum { MMC_NETWORK_ARRIVAL = 1, MMC_NETWORK_TIMER = 2 };

/*
 * Sees each datagram as it is sent and returns whether the network takes it. Is called
 * by mmc_network_send().
 */
typedef bool mmc_network_tap(void *context, const struct mmc_frame *frame);

struct mmc_network {
	struct mmc_network_options options;
	uint64_t now_ns;
	uint64_t nevents;
	struct mmc_heap heap;
	struct mmc_prng prng;
	struct mmc_frames frames;
	struct mmc_link *links;
	uint32_t nlinks;
	mmc_network_tap *tap; /* may be NULL */
	void *tap_context;
	uint64_t lacked_chunks; /* see mmc_network_lack() */
	uint64_t lacked_control;
	bool out_of_memory;
};

/* Begins a network at time 0. Returns 0, -MMC_EINVAL or -MMC_ENOMEM. */
int mmc_network_init(struct mmc_network *network,
		     const struct mmc_network_options *options);

/* Frees the network's memory, frames under way included. */
void mmc_network_free(struct mmc_network *network);

/* Returns the link from a host to its switch, or the link back. */
struct mmc_link *mmc_network_uplink(struct mmc_network *network, uint32_t host);
struct mmc_link *mmc_network_downlink(struct mmc_network *network,
				      uint32_t host);

/*
 * Sends one datagram of `source`. A host's own queue has no bound: a host that fills it
 * must wait for it, see mmc_network_unsent_ns().
 */
void mmc_network_send(struct mmc_network *network, uint32_t source,
		      const struct mmc_parcel *parcel);

/*
 * Returns how long a message without a length takes from one host to another, over a
 * connection that waits for the end of an outage.
 */
uint64_t mmc_network_reach_ns(const struct mmc_network *network, uint32_t from,
			      uint32_t to);

/*
 * Sends `nbytes` over a connection, which loses nothing and has no datagrams: the bytes
 * take their time on the links. Returns when they arrive.
 */
uint64_t mmc_network_transfer(struct mmc_network *network, uint32_t from,
			      uint32_t to, uint64_t nbytes);

/* Returns how long from now on the queue of `host` stays above `queue_bytes`. */
uint64_t mmc_network_unsent_ns(struct mmc_network *network, uint32_t host,
			       uint64_t queue_bytes);

/*
 * Sets a timer: mmc_network_next() reports `kind`, at least MMC_NETWORK_TIMER, with
 * `target` at `time_ns`, or now if that is past.
 */
void mmc_network_at(struct mmc_network *network, uint64_t time_ns,
		    uint32_t kind, uint32_t target);

/*
 * Goes on to the next timer, or to the arrival of a frame (`subject`) at host `target`,
 * which then owns a reference. Returns false when nothing is left.
 */
bool mmc_network_next(struct mmc_network *network, struct mmc_heap_item *event);

/*
 * Counts that `nhosts` of those that `frame` was for do not get it. A chunk that is
 * sent again is for the hosts that still lack it, and counts once.
 */
void mmc_network_lack(struct mmc_network *network,
		      const struct mmc_frame *frame, uint32_t nhosts);

/* Gives back a reference to `frame`. */
void mmc_network_release(struct mmc_network *network, struct mmc_frame *frame);

#endif
