/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/cover.h"

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

static int init_queue(struct mmc_cover_queue *queue, uint32_t nslots)
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

int mmc_covers_init(struct mmc_covers *covers, uint32_t nqueues,
		    uint32_t nslots, uint32_t head_bytes, uint32_t body_bytes)
{
	int rv = 0;

	covers->head_bytes = head_bytes;
	covers->scratch = malloc(body_bytes);
	covers->queues = calloc(nqueues, sizeof(*covers->queues));
	if (covers->scratch == NULL || covers->queues == NULL)
		return -MMC_ENOMEM;
	covers->nqueues = nqueues;
	for (uint32_t i = 0; i < nqueues && rv == 0; i++)
		rv = init_queue(&covers->queues[i], nslots);
	return rv;
}

void mmc_covers_destroy(struct mmc_covers *covers)
{
	for (uint32_t i = 0; i < covers->nqueues; i++) {
		free(covers->queues[i].slots);
		free(covers->queues[i].by_position);
		free(covers->queues[i].placed);
	}
	free(covers->queues);
	free(covers->scratch);
	*covers = (struct mmc_covers){ 0 };
}

/* ---- predicting ---------------------------------------------------------- */

int mmc_covers_begin(struct mmc_covers *covers, const struct mmc_cover *plan)
{
	if (covers->active || plan->schedule->nchains >= covers->nqueues)
		return -MMC_EINVAL;
	covers->plan = *plan;
	covers->active = true;
	/* A plug that found no receive is lost, and is no longer waited for. */
	for (uint32_t i = 0; i < covers->nqueues; i++)
		covers->queues[i].nplugs = 0;
	for (uint32_t c = 0; c < plan->schedule->nchains; c++) {
		covers->queues[c].end = mmc_schedule_length(plan->schedule, c);
		covers->queues[c].block.nchunks = 0;
	}
	return 0;
}

__attribute__((noinline)) static void
change_block(const struct mmc_covers *covers, struct mmc_cover_queue *at,
	     uint32_t position)
{
	const struct mmc_cover *plan = &covers->plan;
	uint32_t chain = (uint32_t)(at - covers->queues);

	at->owner = mmc_schedule_rank(plan->schedule, chain, position);
	at->block = mmc_layout_block(plan->layout, at->owner);
	at->start = mmc_schedule_start(plan->schedule, &at->block);
}

/* Looks up the block that holds `position`, which lies within the chain. */
static inline void look_at(const struct mmc_covers *covers,
			   struct mmc_cover_queue *at, uint32_t position)
{
	if (position - at->start >= at->block.nchunks)
		change_block(covers, at, position);
}

/* Returns the position of the datagram behind those already predicted. */
static inline uint32_t take_position(const struct mmc_covers *covers,
				     struct mmc_cover_queue *at)
{
	if (!covers->loops && at->next < at->end) {
		look_at(covers, at, at->next);
		if (at->owner == covers->plan.rank)
			at->next = at->start + at->block.nchunks;
	}
	return at->next++;
}

void mmc_covers_resume(struct mmc_covers *covers, uint32_t queue)
{
	struct mmc_cover_queue *at = &covers->queues[queue];

	if (!covers->active || !at->off || at->ncovering > 0 ||
	    at->nplugs > 0 || at->nplaced > 0 ||
	    queue >= covers->plan.schedule->nchains)
		return;
	at->off = false;
	at->next = covers->plan.chains[queue].seen;
	for (uint32_t i = 0; i < at->nposted; i++)
		take_position(covers, at);
}

/* Lets the slot cover the place of `position`, unless that place is taken or claimed. */
static void cover(const struct mmc_covers *covers, struct mmc_cover_queue *at,
		  uint32_t slot, uint32_t position)
{
	const struct mmc_cover *plan = &covers->plan;
	struct mmc_cover_slot *covering = &at->slots[slot];
	uint32_t *known = &at->by_position[position % at->nslots];
	const struct mmc_cover_slot *other = &at->slots[*known];
	uint32_t index;
	uint32_t chunk;

	if (position >= at->end)
		return;
	look_at(covers, at, position);
	index = position - at->start;
	chunk = at->block.first + index;
	if (at->owner == plan->rank || mmc_bitmap_test(plan->claimed, chunk) ||
	    (other->place != NULL &&
	     other->position % at->nslots == position % at->nslots))
		return;
	*known = slot;
	covering->place = plan->base + at->block.offset_bytes +
			  (uint64_t)index * plan->layout->chunk_bytes;
	covering->nbytes =
		mmc_layout_block_payload(plan->layout, &at->block, index);
	covering->owner = at->owner;
	covering->chunk = chunk;
	covering->position = position;
	at->ncovering++;
}

const struct mmc_cover_slot *mmc_covers_post(struct mmc_covers *covers,
					     uint32_t queue, uint32_t slot)
{
	struct mmc_cover_queue *at = &covers->queues[queue];

	MMC_ASSERT(!at->slots[slot].posted);
	at->slots[slot].posted = true;
	at->nposted++;
	if (covers->active && !at->off)
		cover(covers, at, slot, take_position(covers, at));
	return &at->slots[slot];
}

/* ---- completing ---------------------------------------------------------- */

/* Copies the payload that waits in the slot's staging memory to its place. */
static void settle(struct mmc_cover_queue *queue, struct mmc_cover_slot *slot)
{
	memcpy(slot->place, slot->staging, slot->nbytes);
	slot->waiting = false;
	queue->placed[queue->nplaced++] = slot->cookie;
}

/* Compares what the header tells; the engine checks the rest. */
static bool is_predicted(const struct mmc_covers *covers,
			 const struct mmc_cover_slot *slot, uint32_t source,
			 const uint8_t *head, uint32_t nbytes)
{
	const struct mmc_cover *plan = &covers->plan;

	return source == slot->owner &&
	       nbytes == covers->head_bytes + slot->nbytes &&
	       (mmc_get_u64(head) & MMC_CHANNEL_MASK) ==
		       (plan->channel & MMC_CHANNEL_MASK) &&
	       mmc_get_u32(head + HEADER_EPOCH) == plan->epoch &&
	       mmc_get_u32(head + HEADER_INDEX) == slot->chunk;
}

uint8_t *mmc_covers_complete(struct mmc_covers *covers, uint32_t queue,
			     uint32_t slot, uint32_t source,
			     const uint8_t *head, uint32_t nbytes,
			     uint64_t *evacuated)
{
	struct mmc_cover_queue *at = &covers->queues[queue];
	struct mmc_cover_slot *covering = &at->slots[slot];
	uint8_t *place = covering->place;
	bool predicted;

	at->nposted--;
	covering->posted = false;
	if (place == NULL)
		return covering->staging;
	predicted = is_predicted(covers, covering, source, head, nbytes);
	at->off |= !predicted;
	at->ncovering--;
	if (predicted && !covering->waiting) {
		covering->place = NULL;
		return place;
	}
	memcpy(covers->scratch, place, covering->nbytes);
	if (covering->waiting)
		settle(at, covering);
	memcpy(covering->staging, covers->scratch, covering->nbytes);
	*evacuated += nbytes > covers->head_bytes;
	covering->place = NULL;
	return covering->staging;
}

void mmc_covers_lift(struct mmc_cover_queue *queue)
{
	for (uint32_t i = 0; i < queue->nslots && queue->ncovering > 0; i++) {
		struct mmc_cover_slot *slot = &queue->slots[i];

		if (slot->place == NULL)
			continue;
		if (slot->waiting)
			settle(queue, slot);
		slot->place = NULL;
		queue->ncovering--;
	}
	queue->off = true;
}

void mmc_covers_end(struct mmc_covers *covers, bool forget)
{
	for (uint32_t i = 0; i < covers->nqueues; i++) {
		mmc_covers_lift(&covers->queues[i]);
		if (forget)
			covers->queues[i].nplaced = 0;
	}
	covers->active = false;
}

/* ---- what comes another way ---------------------------------------------- */

/* Returns the posted slot that covers the place `to`, or NULL. */
static struct mmc_cover_slot *find(struct mmc_covers *covers, const uint8_t *to,
				   struct mmc_cover_queue **queue)
{
	const struct mmc_cover *plan = &covers->plan;
	const struct mmc_layout *layout = plan->layout;
	struct mmc_cover_slot *slot;
	struct mmc_block block;
	uint32_t position;
	uint64_t offset;

	if (!covers->active)
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
	*queue = &covers->queues[mmc_schedule_chain(plan->schedule, &block)];
	slot = &(*queue)->slots[(*queue)->by_position[position %
						      (*queue)->nslots]];
	return slot->place == to ? slot : NULL;
}

bool mmc_covers_defer(struct mmc_covers *covers, const uint8_t *to,
		      const void *from, size_t nbytes, uint64_t cookie)
{
	struct mmc_cover_queue *queue;
	struct mmc_cover_slot *slot = find(covers, to, &queue);

	if (slot == NULL)
		return false;
	MMC_ASSERT(!slot->waiting && nbytes == slot->nbytes);
	memcpy(slot->staging, from, nbytes);
	slot->waiting = true;
	slot->cookie = cookie;
	queue->off = true;
	return true;
}

uint32_t mmc_covers_plugs(const struct mmc_cover_queue *queue)
{
	uint32_t most = mmc_max_u32(queue->nslots / PLUG_SHARE, 1);

	if (!queue->off || queue->nplugs >= most ||
	    queue->nplugs >= queue->ncovering)
		return 0;
	return mmc_min_u32(most, queue->ncovering) - queue->nplugs;
}

bool mmc_covers_placed(struct mmc_covers *covers, uint64_t *cookie)
{
	for (uint32_t i = 0; i < covers->nqueues; i++) {
		struct mmc_cover_queue *queue = &covers->queues[i];

		if (queue->nplaced == 0)
			continue;
		*cookie = queue->placed[--queue->nplaced];
		return true;
	}
	return false;
}
