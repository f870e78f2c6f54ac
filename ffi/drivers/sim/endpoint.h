/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `sim` driver: one rank's endpoint in a simulated network. The program that
 * advances the network's time hands arrivals to the endpoint, and the endpoint's engine
 * polls them. Until then they wait in receive queues: one for control, one for unicast
 * data, and one for each subgroup. The control queue has a limit of its own; the others
 * share one. A datagram for which the limit leaves no room is dropped, and counted as
 * overrun.
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
	uint64_t buffer_bytes;	/* the limit of all other queues together */
	uint64_t control_bytes; /* the limit of the control queue */
	/*
	 * The time from a call of `place` until the copy is made. If neither this nor
	 * `receives` is set, the driver has no `place` and the engine copies.
	 */
	uint64_t place_delay_ns;
	/*
	 * The kind of this host's timer for the next copy: when it expires, the program
	 * calls mmc_sim_endpoint_make_copy().
	 */
	uint32_t place_kind;
	/*
	 * The memory that hosts let each other read, shared by all hosts; NULL: hosts
	 * cannot read.
	 */
	struct mmc_sim_regions *regions;
	uint32_t registrations_max; /* regions of this host at a time */
	/*
	 * The kind of this host's timer for the next step of a read: when it expires,
	 * the program calls mmc_sim_endpoint_step_reads().
	 */
	uint32_t read_kind;
	/*
	 * [nhosts] What each host's kernel answers to inquiries, shared by all hosts;
	 * NULL: hosts cannot inquire.
	 */
	const enum mmc_sim_kernel *kernels;
	/*
	 * The kind of this host's timer for the next answer: when it expires, the
	 * program calls mmc_sim_inquiries_due().
	 */
	uint32_t inquiry_kind;
	/*
	 * The receives that each subgroup has posted (receives.h), which direct
	 * placement needs. A datagram that finds none is dropped. 0: a subgroup needs
	 * no receives, and its datagrams are only limited by `buffer_bytes`.
	 */
	uint32_t receives;
};

struct mmc_sim_endpoint {
	struct mmc_endpoint base;
	struct mmc_driver driver; /* the functions that the options ask for */
	struct mmc_sim_endpoint_options options;
	struct mmc_sim_queue queues[MMC_SIM_QUEUES_MAX];
	uint64_t queued_bytes; /* in all queues but the control queue */
	uint64_t queued_control_bytes;
	/* The frames that the last poll reported: valid until the next poll. */
	struct mmc_frame *lent[MMC_SIM_EVENTS_MAX];
	uint32_t nlent;
	uint32_t next_queue; /* the data queue that is polled first next time */
	struct mmc_sim_copies copies;
	struct mmc_sim_read *reads;	   /* under way */
	struct mmc_sim_read *ended_reads;  /* ended, not yet reported */
	struct mmc_sim_read *reads_lent;   /* reported by the last poll */
	uint32_t nreads;		   /* all reads not yet reported */
	uint32_t nregistered;		   /* regions of this host */
	struct mmc_sim_inquiry *inquiries; /* not yet reported */
	uint32_t nanswered;		   /* of `inquiries`: those answered */
	struct mmc_sim_receives receives;
	struct mmc_traffic_count received; /* all that went into a queue */
	uint64_t overrun_datagrams;	   /* dropped for lack of room */
	uint64_t polled_datagrams;	   /* reported by polls so far */
};

/*
 * Makes an endpoint, which its driver's `close` frees. Returns 0, -MMC_EINVAL if the
 * host or the number of subgroups is out of range, or -MMC_ENOMEM.
 */
int mmc_sim_endpoint_create(const struct mmc_sim_endpoint_options *options,
			    struct mmc_sim_endpoint **endpoint);

/*
 * Queues a frame that has arrived, or drops it. The caller's reference to the frame
 * becomes the endpoint's.
 */
void mmc_sim_endpoint_receive(struct mmc_sim_endpoint *endpoint,
			      struct mmc_frame *frame);

/*
 * Makes the oldest copy that `place` has left for later. Call this when a timer of
 * `place_kind` expires.
 */
void mmc_sim_endpoint_make_copy(struct mmc_sim_endpoint *endpoint);

/*
 * Moves the reads that are due one step on. Call this when a timer of `read_kind`
 * expires.
 */
void mmc_sim_endpoint_step_reads(struct mmc_sim_endpoint *endpoint);

/*
 * Switches the host off: copies that were not made, reads and inquiries are dropped,
 * and other hosts cannot read this host's memory any more.
 */
void mmc_sim_endpoint_die(struct mmc_sim_endpoint *endpoint);

/* Returns whether a poll would find something. */
bool mmc_sim_endpoint_pending(const struct mmc_sim_endpoint *endpoint);

#endif
