/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of unreliable datagrams: a queue pair that sends and receives. It belongs to
 * one multicast group, or takes what is sent to this rank alone.
 */
#ifndef MMC_DRIVERS_VERBS_QUEUE_H
#define MMC_DRIVERS_VERBS_QUEUE_H

#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* The device puts a routing header before each datagram. */
#define MMC_VERBS_GRH_BYTES 40

/* The most datagrams of a queue that are on their way out at a time. */
#define MMC_VERBS_SENDS 128

struct mmc_verbs_queue {
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq;
	struct ibv_qp *qp;
	struct mmc_verbs_ring ring;
	struct mmc_verbs_slots slots;
	bool down;   /* in error: nothing passes until it is flushed */
	bool proven; /* something has passed since it was started */
	enum ibv_wc_status status; /* why it is down */
	uint64_t down_ns;  /* while down: since when nothing has passed */
	uint64_t flush_ns; /* when the queue is flushed, or 0 */
	uint32_t naimed;   /* aimed slots when last looked at */
};

/*
 * Makes a queue that has `nreceives` posted and can send at once. Completions of its
 * receives go to `channel`. The ring's `placement` may be set before the call. Returns 0
 * or an error, with the reason set; the caller calls mmc_verbs_queue_destroy() in
 * either case.
 */
int mmc_verbs_queue_init(struct mmc_verbs_queue *queue,
			 const struct mmc_verbs_port *port,
			 struct ibv_comp_channel *channel, uint32_t nreceives);

/* Frees the queue, which must not be attached to a group any more. */
void mmc_verbs_queue_destroy(struct mmc_verbs_queue *queue);

/*
 * Takes in which slots have left. Returns false if a datagram could not be sent, with
 * the status of the first failure.
 */
bool mmc_verbs_queue_reap(struct mmc_verbs_queue *queue,
			  enum ibv_wc_status *status);

/*
 * Resets the queue pair and starts it again. No receive posted before is filled after
 * the call, none aims at a place, and what was on its way in or out is lost. Returns 0
 * or an error, with the reason set.
 */
int mmc_verbs_queue_flush(struct mmc_verbs_queue *queue,
			  const struct mmc_verbs_port *port);

#endif
