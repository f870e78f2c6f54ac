/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/placement.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire/header.h"
#include "support/assert.h"
#include "support/bits.h"

/* At most one receive in so many is left to plugs: chunks may need the others. */
#define PLUG_SHARE 8

/* The offsets in the wire header of what names the chunk. */
#define HEADER_EPOCH 8
#define HEADER_INDEX 12

/* ---- making -------------------------------------------------------------- */

static int init_queue(struct mmc_placement_queue *queue, uint32_t nslots)
{
	queue->nslots = nslots;
	queue->slots = calloc(nslots, sizeof(*queue->slots));
	queue->by_position = calloc(nslots, sizeof(*queue->by_position));
	queue->placed = calloc(nslots, sizeof(*queue->placed));
	queue->off = true;
	if (queue->slots == NULL || queue->by_position == NULL ||
	    queue->placed == NULL)
		return -MMC_ENOMEM;
	return 0;
}

int mmc_placement_init(struct mmc_placement *placement, uint32_t nqueues,
		       uint32_t nslots, uint32_t head_bytes,
		       uint32_t body_bytes)
{
	int rv = 0;

	placement->head_bytes = head_bytes;
	placement->scratch = malloc(body_bytes);
	placement->queues = calloc(nqueues, sizeof(*placement->queues));
	if (placement->scratch == NULL || placement->queues == NULL)
		return -MMC_ENOMEM;
	placement->nqueues = nqueues;
	for (uint32_t i = 0; i < nqueues && rv == 0; i++)
		rv = init_queue(&placement->queues[i], nslots);
	return rv;
}

void mmc_placement_destroy(struct mmc_placement *placement)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		free(placement->queues[i].slots);
		free(placement->queues[i].by_position);
		free(placement->queues[i].placed);
	}
	free(placement->queues);
	free(placement->scratch);
	*placement = (struct mmc_placement){ 0 };
}

/* ---- predicting ---------------------------------------------------------- */

int mmc_placement_begin(struct mmc_placement *placement,
			const struct mmc_predictor *plan)
{
	if (placement->active || plan->schedule->nchains >= placement->nqueues)
		return -MMC_EINVAL;
	placement->plan = *plan;
	placement->active = true;
	/* A plug that found no receive is lost, and is no longer waited for. */
	for (uint32_t i = 0; i < placement->nqueues; i++)
		placement->queues[i].nplugs = 0;
	for (uint32_t c = 0; c < plan->schedule->nchains; c++) {
		placement->queues[c].end =
			mmc_schedule_length(plan->schedule, c);
		placement->queues[c].block.nchunks = 0;
	}
	return 0;
}

__attribute__((noinline)) static void
change_block(const struct mmc_placement *placement,
	     struct mmc_placement_queue *at, uint32_t position)
{
	const struct mmc_predictor *plan = &placement->plan;
	uint32_t chain = (uint32_t)(at - placement->queues);

	at->owner = mmc_schedule_rank(plan->schedule, chain, position);
	at->block = mmc_layout_block(plan->layout, at->owner);
	at->start = mmc_schedule_start(plan->schedule, &at->block);
}

/* Looks up the block that holds `position`, which lies within the chain. */
static inline void look_at(const struct mmc_placement *placement,
			   struct mmc_placement_queue *at, uint32_t position)
{
	if (position - at->start >= at->block.nchunks)
		change_block(placement, at, position);
}

/* Returns the position of the datagram behind those already predicted. */
static inline uint32_t take_position(const struct mmc_placement *placement,
				     struct mmc_placement_queue *at)
{
	if (!placement->loops && at->next < at->end) {
		look_at(placement, at, at->next);
		if (at->owner == placement->plan.rank)
			at->next = at->start + at->block.nchunks;
	}
	return at->next++;
}

void mmc_placement_resume(struct mmc_placement *placement, uint32_t queue)
{
	struct mmc_placement_queue *at = &placement->queues[queue];

	if (!placement->active || !at->off || at->naimed > 0 ||
	    at->nplugs > 0 || at->nplaced > 0 ||
	    queue >= placement->plan.schedule->nchains)
		return;
	at->off = false;
	at->next = placement->plan.chains[queue].seen;
	for (uint32_t i = 0; i < at->nposted; i++)
		take_position(placement, at);
}

/* Lets the slot cover the place of `position`, unless that place is taken or claimed. */
static void aim(const struct mmc_placement *placement,
		struct mmc_placement_queue *at, uint32_t slot,
		uint32_t position)
{
	const struct mmc_predictor *plan = &placement->plan;
	struct mmc_placement_slot *aiming = &at->slots[slot];
	uint32_t *known = &at->by_position[position % at->nslots];
	const struct mmc_placement_slot *other = &at->slots[*known];
	uint32_t index;
	uint32_t chunk;

	if (position >= at->end)
		return;
	look_at(placement, at, position);
	index = position - at->start;
	chunk = at->block.first + index;
	if (at->owner == plan->rank || mmc_bitmap_test(plan->claimed, chunk) ||
	    (other->place != NULL &&
	     other->position % at->nslots == position % at->nslots))
		return;
	*known = slot;
	aiming->place = plan->base + at->block.offset_bytes +
			(uint64_t)index * plan->layout->chunk_bytes;
	aiming->nbytes =
		mmc_layout_block_payload(plan->layout, &at->block, index);
	aiming->owner = at->owner;
	aiming->chunk = chunk;
	aiming->position = position;
	at->naimed++;
}

const struct mmc_placement_slot *
mmc_placement_post(struct mmc_placement *placement, uint32_t queue,
		   uint32_t slot)
{
	struct mmc_placement_queue *at = &placement->queues[queue];

	MMC_ASSERT(!at->slots[slot].posted);
	at->slots[slot].posted = true;
	at->nposted++;
	if (placement->active && !at->off)
		aim(placement, at, slot, take_position(placement, at));
	return &at->slots[slot];
}

/* ---- completing ---------------------------------------------------------- */

/* Copies the payload that waits in the slot's staging memory to its place. */
static void settle(struct mmc_placement_queue *queue,
		   struct mmc_placement_slot *slot)
{
	memcpy(slot->place, slot->staging, slot->nbytes);
	slot->waiting = false;
	queue->placed[queue->nplaced++] = slot->cookie;
}

/* Compares what the header tells; the engine checks the rest. */
static bool is_predicted(const struct mmc_placement *placement,
			 const struct mmc_placement_slot *slot, uint32_t source,
			 const uint8_t *head, uint32_t nbytes)
{
	const struct mmc_predictor *plan = &placement->plan;

	return source == slot->owner &&
	       nbytes == placement->head_bytes + slot->nbytes &&
	       (mmc_get_u64(head) & MMC_CHANNEL_MASK) ==
		       (plan->channel & MMC_CHANNEL_MASK) &&
	       mmc_get_u32(head + HEADER_EPOCH) == plan->epoch &&
	       mmc_get_u32(head + HEADER_INDEX) == slot->chunk;
}

uint8_t *mmc_placement_complete(struct mmc_placement *placement, uint32_t queue,
				uint32_t slot, uint32_t source,
				const uint8_t *head, uint32_t nbytes,
				uint64_t *evacuated)
{
	struct mmc_placement_queue *at = &placement->queues[queue];
	struct mmc_placement_slot *aiming = &at->slots[slot];
	uint8_t *place = aiming->place;
	bool predicted;

	at->nposted--;
	aiming->posted = false;
	if (place == NULL)
		return aiming->staging;
	predicted = is_predicted(placement, aiming, source, head, nbytes);
	at->off |= !predicted;
	at->naimed--;
	if (predicted && !aiming->waiting) {
		aiming->place = NULL;
		return place;
	}
	memcpy(placement->scratch, place, aiming->nbytes);
	if (aiming->waiting)
		settle(at, aiming);
	memcpy(aiming->staging, placement->scratch, aiming->nbytes);
	*evacuated += nbytes > placement->head_bytes;
	aiming->place = NULL;
	return aiming->staging;
}

void mmc_placement_clear(struct mmc_placement_queue *queue)
{
	for (uint32_t i = 0; i < queue->nslots && queue->naimed > 0; i++) {
		struct mmc_placement_slot *slot = &queue->slots[i];

		if (slot->place == NULL)
			continue;
		if (slot->waiting)
			settle(queue, slot);
		slot->place = NULL;
		queue->naimed--;
	}
	queue->off = true;
}

void mmc_placement_end(struct mmc_placement *placement, bool forget)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		mmc_placement_clear(&placement->queues[i]);
		if (forget)
			placement->queues[i].nplaced = 0;
	}
	placement->active = false;
}

/* ---- what comes another way ---------------------------------------------- */

/* Returns the posted slot that covers the place `to`, or NULL. */
static struct mmc_placement_slot *find(struct mmc_placement *placement,
				       const uint8_t *to,
				       struct mmc_placement_queue **queue)
{
	const struct mmc_predictor *plan = &placement->plan;
	const struct mmc_layout *layout = plan->layout;
	struct mmc_placement_slot *slot;
	struct mmc_block block;
	uint32_t position;
	uint64_t offset;

	if (!placement->active)
		return NULL;
	offset = (uintptr_t)to - (uintptr_t)plan->base;
	if (offset >= layout->total_bytes)
		return NULL;
	block = mmc_layout_block(
		layout,
		mmc_layout_sender(layout,
				  (uint32_t)(offset / layout->block_bytes)));
	position =
		mmc_schedule_start(plan->schedule, &block) +
		(uint32_t)((offset - block.offset_bytes) / layout->chunk_bytes);
	*queue = &placement->queues[mmc_schedule_chain(plan->schedule, &block)];
	slot = &(*queue)->slots[(*queue)->by_position[position %
						      (*queue)->nslots]];
	return slot->place == to ? slot : NULL;
}

bool mmc_placement_defer(struct mmc_placement *placement, const uint8_t *to,
			 const void *from, size_t nbytes, uint64_t cookie)
{
	struct mmc_placement_queue *queue;
	struct mmc_placement_slot *slot = find(placement, to, &queue);

	if (slot == NULL)
		return false;
	MMC_ASSERT(!slot->waiting && nbytes == slot->nbytes);
	memcpy(slot->staging, from, nbytes);
	slot->waiting = true;
	slot->cookie = cookie;
	queue->off = true;
	return true;
}

uint32_t mmc_placement_plugs(const struct mmc_placement_queue *queue)
{
	uint32_t most = mmc_max_u32(queue->nslots / PLUG_SHARE, 1);

	if (!queue->off || queue->nplugs >= most ||
	    queue->nplugs >= queue->naimed)
		return 0;
	return mmc_min_u32(most, queue->naimed) - queue->nplugs;
}

bool mmc_placement_take_settled(struct mmc_placement *placement,
				uint64_t *cookie)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		struct mmc_placement_queue *queue = &placement->queues[i];

		if (queue->nplaced == 0)
			continue;
		*cookie = queue->placed[--queue->nplaced];
		return true;
	}
	return false;
}
