/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `sim` driver: one rank's endpoint in a simulated network. Whoever moves
 * the network's time hands arrivals to the endpoint; its engine polls them.
 *
 * Control has a receive queue of its own; the data of the subgroups and of
 * unicast have one each, but share a bound. What does not fit is counted as
 * overrun and gone.
 */
#ifndef MMC_DRIVERS_SIM_ENDPOINT_H
#define MMC_DRIVERS_SIM_ENDPOINT_H

#include "drivers/driver.h"
#include "drivers/sim/covering.h"
#include "drivers/sim/inquiries.h"
#include "drivers/sim/network.h"
#include "drivers/sim/regions.h"

#define MMC_SIM_ADDRESS_BYTES 64

/* Queues of an endpoint: control, unicast data, and one for each subgroup. */
#define MMC_SIM_SUBGROUPS_MAX 16
#define MMC_SIM_QUEUES_MAX (2 + MMC_SIM_SUBGROUPS_MAX)

/* Events that one poll returns at most. */
#define MMC_SIM_EVENTS_MAX 64

/* Bytes that one read of another host's memory brings. */
#define MMC_SIM_READ_BYTES_MAX 32768

struct mmc_sim_endpoint_options {
	struct mmc_network *network;
	uint32_t host; /* also the rank */
	uint32_t subgroups;
	uint64_t buffer_bytes;	/* of all data queues together */
	uint64_t control_bytes; /* of the control queue */
	/*
	 * When a `place` is carried out and reported; 0: the driver has none
	 * and the engine copies.
	 */
	uint64_t place_delay_ns;
	uint32_t place_kind; /* the network's timer that says it is due */
	/*
	 * What hosts let each other read, shared by all; NULL: nothing. This
	 * host can have `registrations_max` regions at a time.
	 */
	struct mmc_sim_regions *regions;
	uint32_t registrations_max;
	uint32_t read_kind; /* the timer that says that a read goes on */
	/*
	 * How each host answers inquiries, shared by all; NULL: there are none.
	 * The timer says that an answer has arrived.
	 */
	const enum mmc_sim_kernel *kernels;
	uint32_t inquiry_kind;
	/*
	 * Receives that each subgroup has posted, for datagrams that may come
	 * right to their places; 0: it has none, and only bytes count.
	 */
	uint32_t receives;
};

/* Frames, first in, first out, in a ring that grows. */
struct mmc_sim_queue {
	struct mmc_frame **frames;
	uint32_t capacity;
	uint32_t first;
	uint32_t nframes;
};

/* A copy that is asked for and not yet made. */
struct mmc_sim_place {
	struct mmc_sim_place *next;
	void *to;
	uint64_t cookie;
	size_t nbytes;
	uint8_t bytes[];
};

struct mmc_sim_endpoint {
	struct mmc_endpoint base;
	struct mmc_driver driver; /* what the options leave of it */
	struct mmc_sim_endpoint_options options;
	struct mmc_sim_queue queues[MMC_SIM_QUEUES_MAX];
	uint64_t queued_bytes; /* of data */
	uint64_t queued_control_bytes;
	struct mmc_frame *lent[MMC_SIM_EVENTS_MAX]; /* until the next poll */
	uint32_t nlent;
	uint32_t next_queue;	      /* where the next poll begins */
	struct mmc_sim_place *places; /* not yet made, in order */
	struct mmc_sim_place **places_end;
	struct mmc_sim_place *placed; /* made, not yet reported */
	struct mmc_sim_place **placed_end;
	struct mmc_sim_read *reads;	 /* under way */
	struct mmc_sim_read *reads_over; /* and not yet reported */
	struct mmc_sim_read *reads_lent; /* until the next poll */
	uint32_t nreads;		 /* not yet reported */
	uint32_t nregistered;
	struct mmc_sim_inquiry *inquiries;
	uint32_t nanswered; /* of these, not yet reported */
	struct mmc_sim_covering covering;
	struct mmc_traffic_count received;
	uint64_t overrun_datagrams;
};

/*
 * Makes an endpoint. Its `close` frees it. Returns 0, -MMC_EINVAL or
 * -MMC_ENOMEM.
 */
int mmc_sim_endpoint_create(const struct mmc_sim_endpoint_options *options,
			    struct mmc_sim_endpoint **endpoint);

/* Queues a frame that has arrived, taking over the reference, or drops it. */
void mmc_sim_endpoint_receive(struct mmc_sim_endpoint *endpoint,
			      struct mmc_frame *frame);

/* Carries out the oldest `place` that was asked for; its timer has come. */
void mmc_sim_endpoint_place_due(struct mmc_sim_endpoint *endpoint);

/* Goes on with the reads whose time has come. */
void mmc_sim_endpoint_read_due(struct mmc_sim_endpoint *endpoint);

/*
 * Forgets every `place` not yet carried out and every read; nobody reads here
 * any more: the machine is off.
 */
void mmc_sim_endpoint_die(struct mmc_sim_endpoint *endpoint);

/* Whether a poll would find something. */
bool mmc_sim_endpoint_pending(const struct mmc_sim_endpoint *endpoint);

#endif
