/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of receives and their memory. A slot is posted, and completes with a datagram.
 * It is then lent to the engine until the next poll, or given back at once, and posted
 * again, together with others.
 */
#ifndef MMC_DRIVERS_VERBS_RING_H
#define MMC_DRIVERS_VERBS_RING_H

#include "drivers/placement.h"
#include "drivers/verbs/port.h"

/* A list of slots, linked by their requests. */
struct mmc_verbs_slot_list {
	struct ibv_recv_wr *first;
	struct ibv_recv_wr *last;
};

struct mmc_verbs_ring {
	/* Slots are posted to the one of these that is not NULL. */
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	/* The heads of all slots, then their bodies. */
	struct mmc_verbs_memory memory;
	uint32_t nslots;
	uint32_t head_stride_bytes;   /* from one head to the next */
	uint32_t body_stride_bytes;   /* from one body to the next */
	struct ibv_recv_wr *requests; /* their ids are the slots' indices */
	struct ibv_sge *sges;	      /* three for each slot */
	uint32_t body_bytes;
	struct mmc_placement *placement; /* NULL: no slot aims at a place */
	uint32_t placement_queue; /* the index of its queue in `placement` */
	struct mmc_verbs_slot_list lent; /* to the engine */
	struct mmc_verbs_slot_list free; /* to be posted */
};

/*
 * Makes `nslots` slots, none of which is posted yet. The first `head_bytes` of a
 * datagram go to the slot's head, and up to `body_bytes` more to its body; `body_bytes`
 * may be 0. If the caller has set `placement` before, slots may aim at places. Returns
 * 0 or an error, with the reason set; the caller must call mmc_verbs_ring_destroy() in
 * either case.
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

/* Lends a slot that has completed to the engine, until mmc_verbs_ring_reuse(). */
void mmc_verbs_ring_lend(struct mmc_verbs_ring *ring, uint64_t slot);

/*
 * Gives back a slot that has completed and that nobody reads any more.
 * mmc_verbs_ring_post() posts it again.
 */
void mmc_verbs_ring_give(struct mmc_verbs_ring *ring, uint64_t slot);

/* Posts all slots that were given back. */
void mmc_verbs_ring_post(struct mmc_verbs_ring *ring);

/* Gives back all lent slots, and posts all slots that were given back. */
void mmc_verbs_ring_reuse(struct mmc_verbs_ring *ring);

/*
 * Gives back all slots that are posted, after the queue pair was reset and no
 * completion is left. Slots that are lent stay lent.
 */
void mmc_verbs_ring_take_back(struct mmc_verbs_ring *ring);

#endif
