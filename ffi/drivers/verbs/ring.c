/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/ring.h"

#include <stdlib.h>

#define LINE_BYTES 64

static uint32_t stride_bytes(uint32_t nbytes)
{
	return (nbytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Puts a slot at the end of a chain. */
static void append(struct mmc_verbs_chain *chain, struct ibv_recv_wr *request)
{
	request->next = NULL;
	if (chain->first == NULL)
		chain->first = request;
	else
		chain->last->next = request;
	chain->last = request;
}

static void describe(struct mmc_verbs_ring *ring, uint32_t slot,
		     uint32_t head_bytes, uint32_t body_bytes)
{
	struct ibv_sge *pieces = &ring->pieces[2 * (size_t)slot];

	pieces[0] = (struct ibv_sge){
		.addr = (uintptr_t)mmc_verbs_ring_head(ring, slot),
		.length = head_bytes,
		.lkey = ring->memory.region->lkey,
	};
	pieces[1] = (struct ibv_sge){
		.addr = (uintptr_t)mmc_verbs_ring_body(ring, slot),
		.length = body_bytes,
		.lkey = ring->memory.region->lkey,
	};
	ring->requests[slot] = (struct ibv_recv_wr){
		.wr_id = slot,
		.sg_list = pieces,
		.num_sge = body_bytes > 0 ? 2 : 1,
	};
	append(&ring->free, &ring->requests[slot]);
}

int mmc_verbs_ring_init(struct mmc_verbs_ring *ring,
			const struct mmc_verbs_port *port, uint32_t nslots,
			uint32_t head_bytes, uint32_t body_bytes)
{
	int rv;

	ring->nslots = nslots;
	ring->head_stride_bytes = stride_bytes(head_bytes);
	ring->body_stride_bytes = stride_bytes(body_bytes);
	ring->requests = calloc(nslots, sizeof(*ring->requests));
	ring->pieces = calloc(2 * (size_t)nslots, sizeof(*ring->pieces));
	if (ring->requests == NULL || ring->pieces == NULL)
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
	free(ring->pieces);
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

void mmc_verbs_ring_post(struct mmc_verbs_ring *ring)
{
	struct ibv_recv_wr *refused = NULL;
	int rv;

	if (ring->free.first == NULL)
		return;
	rv = ring->srq != NULL
		     ? ibv_post_srq_recv(ring->srq, ring->free.first, &refused)
		     : ibv_post_recv(ring->qp, ring->free.first, &refused);
	/* What a device in trouble refuses is tried again. */
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
