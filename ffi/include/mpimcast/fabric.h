/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric, as the simulator takes it: hosts, switches, the links between them, and the
 * tables by which switches forward. Whoever describes a fabric also decides its routes,
 * as a subnet manager or a routing protocol would.
 *
 * Nodes are numbered: first the hosts, then the switches. A table's rows and columns
 * count switches alone, so that switch 0 is node `nhosts`.
 */
#ifndef MPIMCAST_FABRIC_H
#define MPIMCAST_FABRIC_H

#include <stdint.h>

/* The highest rate of a link, in Mbit/s: a byte takes one picosecond. */
#define MMC_FABRIC_MBITS_MAX 8000000

/* One direction of a link, with the queue that leads to it. */
struct mmc_fabric_link {
	uint32_t from; /* a node */
	uint32_t to;   /* a node */
	uint32_t mbits;
	/*
	 * The rate at which up to `burst_bytes` leave after a pause, as from a token
	 * bucket; 0: no burst.
	 */
	uint32_t burst_mbits;
	uint64_t burst_bytes;
	uint64_t queue_bytes; /* what does not fit is dropped */
	uint32_t latency_ns;  /* from leaving the queue to the other end */
	uint32_t jitter_ns;   /* the most that is added to the latency */
	uint32_t loss;	      /* a probability in parts of 2^32 */
	/*
	 * The mean number of consecutive datagrams that are lost; 0 or 1: losses are
	 * independent. With N the loss is N / (N + 1) at most.
	 */
	uint32_t loss_period;
};

/* How a switch chooses among several links that are equally near to the receiver. */
enum mmc_fabric_choice {
	MMC_FABRIC_HASHED = 0,	 /* by a hash of sender and receiver (ECMP) */
	MMC_FABRIC_ADAPTIVE = 1, /* for each datagram, the shortest queue */
};

/*
 * Hosts hang on one switch each: links h and `nhosts` + h lead from host h to its switch
 * and back. The other links connect switches.
 *
 * Unicast: the links by which switch s forwards to what hangs on switch d are
 *	route_links[route_first[s * nswitches + d] ... route_first[s * nswitches + d + 1]],
 * by any of which d is reached, without circles and over at most 30 links. Multicast: subgroup g uses tree g % ntrees, in which
 * switch s forwards by the links
 *	tree_links[tree_first[t * nswitches + s] ... tree_first[t * nswitches + s + 1]],
 * except back to where the datagram came from. A tree has both directions of each of its
 * links between switches, and no circles; a host that is in none of its lists does not
 * hear the group.
 */
struct mmc_fabric {
	uint32_t nhosts;
	uint32_t nswitches;
	uint32_t nlinks;
	uint32_t ntrees;
	uint32_t choice;		     /* enum mmc_fabric_choice */
	const struct mmc_fabric_link *links; /* [nlinks] */
	const uint32_t *route_first;	     /* [nswitches * nswitches + 1] */
	const uint32_t *route_links;
	const uint32_t *tree_first; /* [ntrees * nswitches + 1] */
	const uint32_t *tree_links;
};

#endif
