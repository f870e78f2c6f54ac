/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue: an unreliable datagram queue pair, with the memory of the datagrams that it
 * sends and receives. It belongs to one multicast group, or to the unicast datagrams.
 */
#ifndef MMC_DRIVERS_VERBS_QUEUE_H
#define MMC_DRIVERS_VERBS_QUEUE_H

#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* The global routing header, which the device puts before each received datagram. */
#define MMC_VERBS_GRH_BYTES 40

/* The most datagrams of a queue that are being sent at a time. */
#define MMC_VERBS_SENDS 128

struct mmc_verbs_queue {
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq;
	struct ibv_qp *qp;
	struct mmc_verbs_ring ring;
	struct mmc_verbs_slots slots;
	bool down;   /* an error has occurred: nothing passes until a flush */
	bool proven; /* whether anything was sent since it was last started */
	enum ibv_wc_status status; /* why it is down */
	uint64_t down_ns;	   /* while down: since when nothing passes */

	/* For direct placement, while the queue is paused: */
	uint64_t flush_ns; /* when to flush the queue, or 0 */
	uint32_t naimed;   /* slots that aimed at places in the last poll */
};

/*
 * Makes a queue that has posted `nreceives` receives and can send. Completions of
 * receives are notified to `channel`. If receives may aim at places, the caller has set
 * the ring's `placement` before. Returns 0 or an error, with the reason set; the caller
 * must call mmc_verbs_queue_destroy() in either case.
 */
int mmc_verbs_queue_init(struct mmc_verbs_queue *queue,
			 const struct mmc_verbs_port *port,
			 struct ibv_comp_channel *channel, uint32_t nreceives);

/* Frees the queue, which must not be attached to a group any more. */
void mmc_verbs_queue_destroy(struct mmc_verbs_queue *queue);

/*
 * Notes which datagrams have left, so that their slots can be used again. Returns false
 * if one could not be sent, and writes the status of the first such failure.
 */
bool mmc_verbs_queue_reap(struct mmc_verbs_queue *queue,
			  enum ibv_wc_status *status);

/*
 * Resets the queue pair and starts it again. Receives that were posted before are
 * posted anew, and none aims at a place. What was on its way in or out is lost. Returns
 * 0 or an error, with the reason set.
 */
int mmc_verbs_queue_flush(struct mmc_verbs_queue *queue,
			  const struct mmc_verbs_port *port);

#endif
