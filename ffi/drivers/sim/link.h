/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a link: a queue of bytes that drops what does not fit, and a rate at
 * which bytes leave the queue. Links count time in picoseconds.
 */
#ifndef MMC_DRIVERS_SIM_LINK_H
#define MMC_DRIVERS_SIM_LINK_H

#include <mpimcast/fabric.h>

#include "core/wire/header.h"
#include "support/gilbert.h"

/* A nanosecond in picoseconds. */
#define MMC_LINK_NS_PS UINT64_C(1000)

struct mmc_link {
	uint64_t byte_ps;     /* the time that one byte takes to leave */
	uint64_t queue_bytes; /* the most bytes that wait in the queue */
	uint64_t free_ps;     /* when all that has entered will have left */
	/* With a token bucket: the time of a byte in a burst, the bucket's size, ... */
	uint64_t burst_byte_ps;
	uint64_t burst_bytes; /* 0: there is no bucket */
	uint64_t full_ps;     /* ... and when it will be full again */
	struct mmc_gilbert losses;
	uint32_t latency_ns; /* from leaving the queue to the other end */
	uint32_t jitter_ns;  /* the most that is added to the latency */

	/* The datagrams so far, counted by what became of them: */
	uint64_t entered;    /* sent to this link */
	uint64_t overflowed; /* did not fit into the queue */
	uint64_t duplicated; /* came out twice */
	uint64_t lost;	     /* lost on the way */
	uint64_t delivered;  /* reached the other end */
	uint64_t packets;    /* of convoys, which no link drops or loses */
	/* The bytes that went into the queue, with all headers. */
	uint64_t bytes;
	/* Of these, those of datagrams, by enum mmc_traffic. */
	uint64_t kind_bytes[MMC_TRAFFIC_COUNT];
	uint64_t deepest_bytes; /* the most that the queue has ever held */
};

/* Packets of one message that enter a link together. */
struct mmc_link_convoy {
	uint64_t nbytes;       /* of all packets, headers included */
	uint64_t packet_bytes; /* of the longest packet */
	uint32_t npackets;
	/* The time at which the last packet can enter; the first can enter now. */
	uint64_t last_ns;
};

/* Returns a time in nanoseconds, rounded up. */
static inline uint64_t mmc_link_ps_to_ns(uint64_t time_ps)
{
	return (time_ps + MMC_LINK_NS_PS - 1) / MMC_LINK_NS_PS;
}

/* Returns the time that a byte takes at a rate of 1 to MMC_FABRIC_MBITS_MAX Mbit/s. */
static inline uint64_t mmc_link_byte_ps(uint32_t mbits)
{
	return MMC_FABRIC_MBITS_MAX / mbits;
}

/* Returns a link as a fabric describes it, with nothing in its queue. */
struct mmc_link mmc_link_make(const struct mmc_fabric_link *described);

/*
 * Queues a datagram that takes `nbytes` on the link. Returns false if it does not fit
 * and is dropped. Otherwise writes when it will have left the queue; the link's latency
 * is not included.
 */
bool mmc_link_enter(struct mmc_link *link, uint64_t nbytes, uint64_t now_ns,
		    uint64_t *left_ns);

/*
 * Queues a convoy, however long the queue is. Writes when its first packet will have
 * left, and to `convoy->last_ns` when its last will have.
 */
void mmc_link_enter_convoy(struct mmc_link *link,
			   struct mmc_link_convoy *convoy, uint64_t now_ns,
			   uint64_t *first_ns);

/* Returns how long from now on the queue stays above `queue_bytes`. */
uint64_t mmc_link_busy_ns(const struct mmc_link *link, uint64_t queue_bytes,
			  uint64_t now_ns);

#endif
