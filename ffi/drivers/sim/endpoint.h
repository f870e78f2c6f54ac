/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `sim` driver: one rank's endpoint in a simulated network. The program that moves
 * the network's time hands arrivals to the endpoint; the endpoint's engine polls them.
 * Control has a receive queue of its own. The data of each subgroup and of unicast have
 * one each, but share a bound. What does not fit is dropped, and counted as overrun.
 */
#ifndef MMC_DRIVERS_SIM_ENDPOINT_H
#define MMC_DRIVERS_SIM_ENDPOINT_H

#include "drivers/driver.h"
#include "drivers/sim/copies.h"
#include "drivers/sim/inquiries.h"
#include "drivers/sim/network.h"
#include "drivers/sim/queue.h"
#include "drivers/sim/receives.h"
#include "drivers/sim/regions.h"

#define MMC_SIM_ADDRESS_BYTES 64

/* Queues of an endpoint: control, unicast data, and one for each subgroup. */
#define MMC_SIM_SUBGROUPS_MAX 16
#define MMC_SIM_QUEUES_MAX (2 + MMC_SIM_SUBGROUPS_MAX)

/* The most events that one poll returns. */
#define MMC_SIM_EVENTS_MAX 64

/* The most bytes that one read of another host's memory brings. */
#define MMC_SIM_READ_BYTES_MAX 32768

struct mmc_sim_endpoint_options {
	struct mmc_network *network;
	uint32_t host; /* also the rank */
	uint32_t subgroups;
	uint64_t buffer_bytes;	/* of all data queues together */
	uint64_t control_bytes; /* of the control queue */
	/*
	 * The time until a `place` is carried out and reported. If neither this nor
	 * `receives` is set, the driver has no `place` and the engine copies.
	 */
	uint64_t place_delay_ns;
	uint32_t place_kind; /* the timer that says that it is due */
	/*
	 * The memory that hosts let each other read, shared by all; NULL: none. This
	 * host can have `registrations_max` regions at a time.
	 */
	struct mmc_sim_regions *regions;
	uint32_t registrations_max;
	uint32_t read_kind; /* the timer for the next step of a read */
	/*
	 * The answer of each host to inquiries, shared by all; NULL: there are no
	 * inquiries. `inquiry_kind` is the timer that says that an answer has arrived.
	 */
	const enum mmc_sim_kernel *kernels;
	uint32_t inquiry_kind;
	/*
	 * Receives that each subgroup has posted, for datagrams that may be put right
	 * in their places; 0: none, and only bytes count.
	 */
	uint32_t receives;
};

struct mmc_sim_endpoint {
	struct mmc_endpoint base;
	struct mmc_driver driver; /* without what the options leave out */
	struct mmc_sim_endpoint_options options;
	struct mmc_sim_queue queues[MMC_SIM_QUEUES_MAX];
	uint64_t queued_bytes; /* in the data queues */
	uint64_t queued_control_bytes;
	struct mmc_frame *lent[MMC_SIM_EVENTS_MAX]; /* until the next poll */
	uint32_t nlent;
	uint32_t next_queue; /* data queue that the next poll begins with */
	struct mmc_sim_copies copies;
	struct mmc_sim_read *reads;	 /* under way */
	struct mmc_sim_read *reads_over; /* complete, not yet reported */
	struct mmc_sim_read *reads_lent; /* until the next poll */
	uint32_t nreads;		 /* all reads not yet reported */
	uint32_t nregistered;
	struct mmc_sim_inquiry *inquiries;
	uint32_t nanswered; /* answered inquiries, not yet reported */
	struct mmc_sim_receives receives;
	struct mmc_traffic_count received;
	uint64_t overrun_datagrams;
};

/*
 * Makes an endpoint. Its `close` frees it. Returns 0, -MMC_EINVAL or
 * -MMC_ENOMEM.
 */
int mmc_sim_endpoint_create(const struct mmc_sim_endpoint_options *options,
			    struct mmc_sim_endpoint **endpoint);

/* Queues a frame that has arrived, or drops it; either way takes the reference. */
void mmc_sim_endpoint_receive(struct mmc_sim_endpoint *endpoint,
			      struct mmc_frame *frame);

/*
 * Carries out the oldest `place` that was asked for. Is called when its timer expires.
 */
void mmc_sim_endpoint_place_due(struct mmc_sim_endpoint *endpoint);

/* Moves the reads that are due one step on. */
void mmc_sim_endpoint_read_due(struct mmc_sim_endpoint *endpoint);

/*
 * Forgets every `place` not yet carried out, every read and every inquiry, since the
 * machine is off. This host's memory cannot be read any more.
 */
void mmc_sim_endpoint_die(struct mmc_sim_endpoint *endpoint);

/* Returns whether a poll would find something. */
bool mmc_sim_endpoint_pending(const struct mmc_sim_endpoint *endpoint);

#endif
