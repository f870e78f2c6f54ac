/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of posted receives and the memory behind it. A slot is posted, taken by a
 * completion, and then either lent to the engine until the next poll or given back at
 * once. Slots go back to the queue in batches.
 */
#ifndef MMC_DRIVERS_VERBS_RING_H
#define MMC_DRIVERS_VERBS_RING_H

#include "drivers/placement.h"
#include "drivers/verbs/port.h"

/* Slots on their way back to the queue, linked by their requests. */
struct mmc_verbs_slot_list {
	struct ibv_recv_wr *first;
	struct ibv_recv_wr *last;
};

struct mmc_verbs_ring {
	struct ibv_qp *qp;   /* takes the slots, or NULL */
	struct ibv_srq *srq; /* shared; takes the slots, or NULL */
	struct mmc_verbs_memory memory;
	uint32_t nslots;
	uint32_t head_stride_bytes;
	uint32_t body_stride_bytes;
	struct ibv_recv_wr *requests; /* with the slot's index as id */
	struct ibv_sge *pieces;	      /* three for each slot */
	uint32_t body_bytes;
	struct mmc_placement *placement; /* NULL: no slot aims at a place */
	uint32_t
		placement_queue; /* the index of this ring's queue in `placement` */
	struct mmc_verbs_slot_list lent;
	struct mmc_verbs_slot_list free;
};

/*
 * Makes `nslots` slots whose first `head_bytes` and next `body_bytes` go to places of
 * their own; body_bytes may be 0. No slot is posted yet. If `placement` was set before,
 * slots may put payloads right in their places. Returns 0 or an error, with the reason
 * set; the caller calls mmc_verbs_ring_destroy() in either case.
 */
int mmc_verbs_ring_init(struct mmc_verbs_ring *ring,
			const struct mmc_verbs_port *port, uint32_t nslots,
			uint32_t head_bytes, uint32_t body_bytes);

void mmc_verbs_ring_destroy(struct mmc_verbs_ring *ring);

static inline uint8_t *mmc_verbs_ring_head(const struct mmc_verbs_ring *ring,
					   uint64_t slot)
{
	return ring->memory.bytes + slot * ring->head_stride_bytes;
}

static inline uint8_t *mmc_verbs_ring_body(const struct mmc_verbs_ring *ring,
					   uint64_t slot)
{
	return ring->memory.bytes +
	       (size_t)ring->nslots * ring->head_stride_bytes +
	       slot * ring->body_stride_bytes;
}

/* Keeps a slot that has completed until mmc_verbs_ring_reuse(). */
void mmc_verbs_ring_lend(struct mmc_verbs_ring *ring, uint64_t slot);

/* Gives back a slot that is not read any more; mmc_verbs_ring_post() posts it. */
void mmc_verbs_ring_give(struct mmc_verbs_ring *ring, uint64_t slot);

void mmc_verbs_ring_post(struct mmc_verbs_ring *ring);

/* Gives back all lent slots, and posts what was given back. */
void mmc_verbs_ring_reuse(struct mmc_verbs_ring *ring);

/*
 * Gives back all slots that were posted. The queue pair must have been reset, and its
 * completions taken. Slots that are lent stay lent.
 */
void mmc_verbs_ring_take_back(struct mmc_verbs_ring *ring);

#endif
