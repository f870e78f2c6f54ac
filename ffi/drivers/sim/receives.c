/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/receives.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/endpoint.h"
#include "support/bits.h"

/* Returns the slot of a subgroup's receive, given the receive's number. */
static uint32_t slot_of(const struct mmc_sim_endpoint *self, uint64_t number)
{
	return (uint32_t)(number % self->options.receives);
}

static uint32_t head_bytes(const struct mmc_sim_endpoint *self)
{
	return self->options.network->options.head_bytes;
}

int mmc_sim_receives_init(struct mmc_sim_endpoint *self)
{
	struct mmc_sim_receives *receives = &self->receives;
	uint32_t nqueues = self->options.subgroups;
	uint32_t nslots = self->options.receives;
	uint32_t body_bytes = self->options.network->options.datagram_bytes_max;
	int rv = mmc_placement_init(&receives->placement, nqueues, nslots,
				    head_bytes(self), body_bytes);

	receives->rings = calloc(nqueues, sizeof(*receives->rings));
	receives->staging = malloc((size_t)nqueues * nslots * body_bytes);
	if (rv < 0 || !receives->rings || !receives->staging)
		return -MMC_ENOMEM;
	for (uint32_t q = 0; q < nqueues; q++)
		for (uint32_t i = 0; i < nslots; i++)
			receives->placement.queues[q].slots[i].staging =
				receives->staging +
				(size_t)(q * nslots + i) * body_bytes;
	mmc_sim_receives_post(self);
	return 0;
}

void mmc_sim_receives_destroy(struct mmc_sim_endpoint *self)
{
	mmc_placement_destroy(&self->receives.placement);
	free(self->receives.rings);
	free(self->receives.staging);
}

void mmc_sim_receives_post(struct mmc_sim_endpoint *self)
{
	struct mmc_sim_receives *receives = &self->receives;

	for (uint32_t q = 0; q < receives->placement.nqueues; q++) {
		struct mmc_sim_ring *ring = &receives->rings[q];
		uint64_t end = ring->npolled + self->options.receives;
		uint32_t slots[MMC_PLACEMENT_BATCH];

		mmc_placement_resume(&receives->placement, q);
		while (ring->nposted < end) {
			uint32_t count = 0;

			while (ring->nposted < end &&
			       count < MMC_PLACEMENT_BATCH)
				slots[count++] = slot_of(self, ring->nposted++);
			mmc_placement_post(&receives->placement, q, slots,
					   count);
		}
	}
}

bool mmc_sim_receives_arrive(struct mmc_sim_endpoint *self, uint32_t subgroup,
			     const struct mmc_frame *frame)
{
	struct mmc_sim_receives *receives = &self->receives;
	struct mmc_sim_ring *ring = &receives->rings[subgroup];
	const struct mmc_placement_slot *slot =
		&receives->placement.queues[subgroup]
			 .slots[slot_of(self, ring->narrived)];
	const uint8_t *body;
	uint32_t body_bytes;
	uint32_t most;

	if (ring->narrived == ring->nposted)
		return false;
	ring->narrived++;
	receives->nplugs += !frame;
	if (!frame || !slot->aim.place || frame->nbytes <= head_bytes(self))
		return true;
	body = frame->bytes + head_bytes(self);
	body_bytes = frame->nbytes - head_bytes(self);
	most = mmc_min_u32(body_bytes, slot->aim.nbytes);
	memcpy(slot->aim.place, body, most);
	memcpy(slot->staging + most, body + most, body_bytes - most);
	return true;
}

const uint8_t *mmc_sim_receives_poll(struct mmc_sim_endpoint *self,
				     uint32_t subgroup,
				     const struct mmc_frame *frame)
{
	struct mmc_sim_receives *receives = &self->receives;
	struct mmc_placement *placement = &receives->placement;
	uint32_t slot = slot_of(self, receives->rings[subgroup].npolled++);
	bool aimed = placement->queues[subgroup].slots[slot].aim.place != NULL;
	const uint8_t *body;

	if (!frame) {
		placement->queues[subgroup].nplugs -=
			placement->queues[subgroup].nplugs > 0;
		receives->nplugs--;
	}
	body = mmc_placement_complete(
		placement, subgroup, slot,
		frame ? frame->source : self->options.host,
		frame ? frame->bytes : NULL, frame ? frame->nbytes : 0);
	return aimed ? body : NULL;
}

uint32_t mmc_sim_receives_plugs(struct mmc_sim_endpoint *self,
				uint32_t subgroup)
{
	struct mmc_placement_queue *queue =
		&self->receives.placement.queues[subgroup];
	const struct mmc_sim_ring *ring = &self->receives.rings[subgroup];
	uint32_t nfree = (uint32_t)(ring->nposted - ring->narrived);
	uint32_t nplugs = mmc_min_u32(mmc_placement_plugs(queue), nfree);

	queue->nplugs += nplugs;
	return nplugs;
}

int mmc_sim_begin_placement(struct mmc_endpoint *endpoint,
			    const struct mmc_predictor *predictor)
{
	struct mmc_sim_endpoint *self = (struct mmc_sim_endpoint *)endpoint;

	return mmc_placement_begin(&self->receives.placement, predictor);
}

/* Cannot fail, since a simulated queue is flushed at once. */
int mmc_sim_end_placement(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_sim_endpoint *self = (struct mmc_sim_endpoint *)endpoint;

	mmc_placement_end(&self->receives.placement, forget);
	return 0;
}
