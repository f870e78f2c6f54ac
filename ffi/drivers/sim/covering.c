/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/covering.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/endpoint.h"
#include "support/bits.h"

static uint32_t slot_of(const struct mmc_sim_endpoint *self, uint64_t number)
{
	return (uint32_t)(number % self->options.receives);
}

static uint32_t head_bytes(const struct mmc_sim_endpoint *self)
{
	return self->options.network->options.head_bytes;
}

int mmc_sim_covering_init(struct mmc_sim_endpoint *self)
{
	struct mmc_sim_covering *covering = &self->covering;
	uint32_t nqueues = self->options.subgroups;
	uint32_t nslots = self->options.receives;
	uint32_t body_bytes = self->options.network->options.datagram_bytes_max;
	int rv = mmc_covers_init(&covering->covers, nqueues, nslots,
				 head_bytes(self), body_bytes);

	covering->rings = calloc(nqueues, sizeof(*covering->rings));
	covering->staging = malloc((size_t)nqueues * nslots * body_bytes);
	if (rv < 0 || !covering->rings || !covering->staging)
		return -MMC_ENOMEM;
	for (uint32_t q = 0; q < nqueues; q++)
		for (uint32_t i = 0; i < nslots; i++)
			covering->covers.queues[q].slots[i].staging =
				covering->staging +
				(size_t)(q * nslots + i) * body_bytes;
	mmc_sim_covering_post(self);
	return 0;
}

void mmc_sim_covering_destroy(struct mmc_sim_endpoint *self)
{
	mmc_covers_destroy(&self->covering.covers);
	free(self->covering.rings);
	free(self->covering.staging);
}

void mmc_sim_covering_post(struct mmc_sim_endpoint *self)
{
	struct mmc_sim_covering *covering = &self->covering;

	for (uint32_t q = 0; q < covering->covers.nqueues; q++) {
		struct mmc_sim_ring *ring = &covering->rings[q];

		mmc_covers_resume(&covering->covers, q);
		while (ring->nposted < ring->npolled + self->options.receives)
			mmc_covers_post(&covering->covers, q,
					slot_of(self, ring->nposted++));
	}
}

bool mmc_sim_covering_arrive(struct mmc_sim_endpoint *self, uint32_t subgroup,
			     const struct mmc_frame *frame)
{
	struct mmc_sim_covering *covering = &self->covering;
	struct mmc_sim_ring *ring = &covering->rings[subgroup];
	const struct mmc_cover_slot *slot =
		&covering->covers.queues[subgroup]
			 .slots[slot_of(self, ring->narrived)];
	const uint8_t *body;
	uint32_t body_bytes;
	uint32_t most;

	if (ring->narrived == ring->nposted)
		return false;
	ring->narrived++;
	covering->nplugs += !frame;
	if (!frame || !slot->place || frame->nbytes <= head_bytes(self))
		return true;
	body = frame->bytes + head_bytes(self);
	body_bytes = frame->nbytes - head_bytes(self);
	most = mmc_min_u32(body_bytes, slot->nbytes);
	memcpy(slot->place, body, most);
	memcpy(slot->staging + most, body + most, body_bytes - most);
	return true;
}

const uint8_t *mmc_sim_covering_poll(struct mmc_sim_endpoint *self,
				     uint32_t subgroup,
				     const struct mmc_frame *frame)
{
	struct mmc_sim_covering *covering = &self->covering;
	struct mmc_covers *covers = &covering->covers;
	uint32_t slot = slot_of(self, covering->rings[subgroup].npolled++);
	bool covered = covers->queues[subgroup].slots[slot].place != NULL;
	const uint8_t *body;

	if (!frame) {
		covers->queues[subgroup].nplugs -=
			covers->queues[subgroup].nplugs > 0;
		covering->nplugs--;
	}
	body = mmc_covers_complete(covers, subgroup, slot,
				   frame ? frame->source : self->options.host,
				   frame ? frame->bytes : NULL,
				   frame ? frame->nbytes : 0,
				   &self->base.evacuated);
	return covered ? body : NULL;
}

uint32_t mmc_sim_covering_plugs(struct mmc_sim_endpoint *self,
				uint32_t subgroup)
{
	struct mmc_cover_queue *queue = &self->covering.covers.queues[subgroup];
	const struct mmc_sim_ring *ring = &self->covering.rings[subgroup];
	uint32_t nfree = (uint32_t)(ring->nposted - ring->narrived);
	uint32_t nplugs = mmc_min_u32(mmc_covers_plugs(queue), nfree);

	queue->nplugs += nplugs;
	return nplugs;
}

int mmc_sim_cover(struct mmc_endpoint *endpoint, const struct mmc_cover *plan)
{
	struct mmc_sim_endpoint *self = (struct mmc_sim_endpoint *)endpoint;

	return mmc_covers_begin(&self->covering.covers, plan);
}

/* Cannot fail, since a simulated queue is flushed at once. */
int mmc_sim_uncover(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_sim_endpoint *self = (struct mmc_sim_endpoint *)endpoint;

	mmc_covers_end(&self->covering.covers, forget);
	return 0;
}
