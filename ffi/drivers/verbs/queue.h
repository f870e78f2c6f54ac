/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of unreliable datagrams: a queue pair that sends and receives, of one
 * multicast group or of what is sent to this rank alone.
 */
#ifndef MMC_DRIVERS_VERBS_QUEUE_H
#define MMC_DRIVERS_VERBS_QUEUE_H

#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* The device puts a routing header before each datagram. */
#define MMC_VERBS_GRH_BYTES 40

/* Datagrams of a queue that are on their way out at a time. */
#define MMC_VERBS_SENDS 128

struct mmc_verbs_queue {
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq;
	struct ibv_qp *qp;
	struct mmc_verbs_ring ring;
	struct mmc_verbs_slots slots;
	bool down;   /* in error: nothing comes or leaves until it is flushed */
	bool proven; /* something has passed since it was started */
	enum ibv_wc_status status; /* of one that is down */
	uint64_t down_ns;	   /* since when nothing has passed */
	uint64_t lift_ns;	   /* when it is flushed, or 0 */
	uint32_t ncovering;	   /* receives that covered when that was set */
};

/*
 * Makes a queue with `nreceives` posted, which can send at once. Its receive
 * completions go to `channel`. Its ring's `covers` may be set before. Returns 0
 * or an error told; mmc_verbs_queue_destroy() is to be called all the same.
 */
int mmc_verbs_queue_init(struct mmc_verbs_queue *queue,
			 const struct mmc_verbs_port *port,
			 struct ibv_comp_channel *channel, uint32_t nreceives);

/* It is attached to no group any more. */
void mmc_verbs_queue_destroy(struct mmc_verbs_queue *queue);

/*
 * Looks which slots have left. Returns whether all is well; if not, writes the
 * status of the first that failed.
 */
bool mmc_verbs_queue_reap(struct mmc_verbs_queue *queue,
			  enum ibv_wc_status *status);

/*
 * Resets the queue pair, and starts it again: nothing that was posted is filled
 * after that, and no place is covered. What was on its way in or out is lost.
 * Returns 0 or an error told.
 */
int mmc_verbs_queue_flush(struct mmc_verbs_queue *queue,
			  const struct mmc_verbs_port *port);

#endif
