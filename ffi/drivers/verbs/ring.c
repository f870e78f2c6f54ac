/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/ring.h"

#include <stdlib.h>

/* A cache line: no two slots share one. */
#define LINE_BYTES 64

/* The sges of a slot: its head; the place that it aims at, if any; its body. */
#define SGES 3

/* Rounds up to whole cache lines. */
static uint32_t stride_bytes(uint32_t nbytes)
{
	return (nbytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Puts a slot at the end of a list. */
static void append(struct mmc_verbs_slot_list *list,
		   struct ibv_recv_wr *request)
{
	request->next = NULL;
	if (list->first == NULL)
		list->first = request;
	else
		list->last->next = request;
	list->last = request;
}

/* Fills in the request of a slot that aims at nothing, and adds it to the free ones. */
static void describe(struct mmc_verbs_ring *ring, uint32_t slot,
		     uint32_t head_bytes, uint32_t body_bytes)
{
	struct ibv_sge *sges = &ring->sges[SGES * (size_t)slot];

	sges[0] = (struct ibv_sge){
		.addr = (uintptr_t)mmc_verbs_ring_head(ring, slot),
		.length = head_bytes,
		.lkey = ring->memory.region->lkey,
	};
	sges[1] = (struct ibv_sge){
		.addr = (uintptr_t)mmc_verbs_ring_body(ring, slot),
		.length = body_bytes,
		.lkey = ring->memory.region->lkey,
	};
	ring->requests[slot] = (struct ibv_recv_wr){
		.wr_id = slot,
		.sg_list = sges,
		.num_sge = body_bytes > 0 ? 2 : 1,
	};
	if (ring->placement != NULL)
		ring->placement->queues[ring->placement_queue]
			.slots[slot]
			.staging = mmc_verbs_ring_body(ring, slot);
	append(&ring->free, &ring->requests[slot]);
}

int mmc_verbs_ring_init(struct mmc_verbs_ring *ring,
			const struct mmc_verbs_port *port, uint32_t nslots,
			uint32_t head_bytes, uint32_t body_bytes)
{
	int rv;

	ring->nslots = nslots;
	ring->body_bytes = body_bytes;
	ring->head_stride_bytes = stride_bytes(head_bytes);
	ring->body_stride_bytes = stride_bytes(body_bytes);
	ring->requests = calloc(nslots, sizeof(*ring->requests));
	ring->sges = calloc(SGES * (size_t)nslots, sizeof(*ring->sges));
	if (ring->requests == NULL || ring->sges == NULL)
		return -MMC_ENOMEM;
	rv = mmc_verbs_memory_init(&ring->memory, port,
				   (size_t)nslots * (ring->head_stride_bytes +
						     ring->body_stride_bytes));
	for (uint32_t slot = 0; slot < nslots && rv == 0; slot++)
		describe(ring, slot, head_bytes, body_bytes);
	return rv;
}

void mmc_verbs_ring_destroy(struct mmc_verbs_ring *ring)
{
	mmc_verbs_memory_destroy(&ring->memory);
	free(ring->sges);
	free(ring->requests);
}

void mmc_verbs_ring_lend(struct mmc_verbs_ring *ring, uint64_t slot)
{
	append(&ring->lent, &ring->requests[slot]);
}

void mmc_verbs_ring_give(struct mmc_verbs_ring *ring, uint64_t slot)
{
	append(&ring->free, &ring->requests[slot]);
}

/*
 * Fills in the sges of a slot's request by what the slot aims at. The body takes what
 * does not fit into the place, or everything if the slot aims at none.
 */
static void describe_aim(struct mmc_verbs_ring *ring, uint32_t slot)
{
	const struct mmc_prediction *aim =
		&ring->placement->queues[ring->placement_queue].slots[slot].aim;
	const struct ibv_mr *region = ring->placement->predictor.region.handle;
	struct ibv_sge *sges = &ring->sges[SGES * (size_t)slot];
	struct ibv_sge body = {
		.addr = (uintptr_t)mmc_verbs_ring_body(ring, slot),
		.length = ring->body_bytes,
		.lkey = ring->memory.region->lkey,
	};

	sges[1] = body;
	ring->requests[slot].num_sge = 2;
	if (aim->place == NULL)
		return;
	sges[1].addr = (uintptr_t)aim->place;
	sges[1].length = aim->nbytes;
	sges[1].lkey = region->lkey;
	sges[2] = body;
	sges[2].addr += aim->nbytes;
	sges[2].length -= aim->nbytes;
	ring->requests[slot].num_sge = 3;
}

/*
 * Decides what the slots that are about to be posted aim at. If the device refuses a
 * slot, the decision stands until the slot is posted later.
 */
static void aim_free_slots(struct mmc_verbs_ring *ring)
{
	const struct mmc_placement_queue *queue =
		&ring->placement->queues[ring->placement_queue];
	const struct ibv_recv_wr *request = ring->free.first;
	uint32_t slots[MMC_PLACEMENT_BATCH];

	while (request != NULL) {
		uint32_t count = 0;

		for (; request != NULL && count < MMC_PLACEMENT_BATCH;
		     request = request->next)
			if (!queue->slots[request->wr_id].posted)
				slots[count++] = (uint32_t)request->wr_id;
		mmc_placement_post(ring->placement, ring->placement_queue,
				   slots, count);
		for (uint32_t i = 0; i < count; i++)
			describe_aim(ring, slots[i]);
	}
}

void mmc_verbs_ring_post(struct mmc_verbs_ring *ring)
{
	struct ibv_recv_wr *refused = NULL;
	int rv;

	if (ring->free.first == NULL)
		return;
	if (ring->placement != NULL)
		aim_free_slots(ring);
	rv = ring->srq != NULL
		     ? ibv_post_srq_recv(ring->srq, ring->free.first, &refused)
		     : ibv_post_recv(ring->qp, ring->free.first, &refused);
	/* A device in trouble may refuse some, which are then posted next time. */
	ring->free.first = rv == 0 ? NULL : refused;
}

void mmc_verbs_ring_reuse(struct mmc_verbs_ring *ring)
{
	if (ring->lent.first != NULL) {
		if (ring->free.first == NULL)
			ring->free.first = ring->lent.first;
		else
			ring->free.last->next = ring->lent.first;
		ring->free.last = ring->lent.last;
		ring->lent.first = NULL;
	}
	mmc_verbs_ring_post(ring);
}

/* Marks the id of a request whose slot is in one of the lists. */
#define LISTED (UINT64_C(1) << 63)

static void mark(const struct mmc_verbs_slot_list *list)
{
	struct ibv_recv_wr *request = list->first;

	for (; request != NULL; request = request->next)
		request->wr_id |= LISTED;
}

void mmc_verbs_ring_take_back(struct mmc_verbs_ring *ring)
{
	struct mmc_placement_queue *queue =
		ring->placement != NULL
			? &ring->placement->queues[ring->placement_queue]
			: NULL;

	mark(&ring->free);
	mark(&ring->lent);
	for (uint32_t slot = 0; slot < ring->nslots; slot++) {
		bool listed = ring->requests[slot].wr_id & LISTED;

		ring->requests[slot].wr_id &= ~LISTED;
		if (!listed)
			mmc_verbs_ring_give(ring, slot);
		if (queue != NULL)
			queue->slots[slot].posted = false;
	}
	if (queue != NULL)
		queue->nposted = 0;
}
