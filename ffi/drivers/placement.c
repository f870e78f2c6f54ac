/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/placement.h"

#include <stdlib.h>
#include <string.h>

#include "support/assert.h"
#include "support/bits.h"

/*
 * Plugs may use up one in this many of a queue's receives: chunks may need the others.
 */
#define PLUG_SHARE 8

/* ---- making -------------------------------------------------------------- */

static int init_queue(struct mmc_placement_queue *queue, uint32_t subgroup,
		      uint32_t nslots)
{
	queue->cursor.subgroup = subgroup;
	queue->nslots = nslots;
	queue->slots = calloc(nslots, sizeof(*queue->slots));
	queue->by_position = calloc(nslots, sizeof(*queue->by_position));
	queue->settled = calloc(nslots, sizeof(*queue->settled));
	queue->paused = true;
	if (queue->slots == NULL || queue->by_position == NULL ||
	    queue->settled == NULL)
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
		rv = init_queue(&placement->queues[i], i, nslots);
	return rv;
}

void mmc_placement_destroy(struct mmc_placement *placement)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		free(placement->queues[i].slots);
		free(placement->queues[i].by_position);
		free(placement->queues[i].settled);
	}
	free(placement->queues);
	free(placement->scratch);
	*placement = (struct mmc_placement){ 0 };
}

/* ---- aiming -------------------------------------------------------------- */

int mmc_placement_begin(struct mmc_placement *placement,
			const struct mmc_predictor *predictor)
{
	if (placement->active || predictor->nsubgroups >= placement->nqueues)
		return -MMC_EINVAL;
	placement->predictor = *predictor;
	placement->active = true;
	/* Plugs that were sent earlier and have not arrived by now found no receive. */
	for (uint32_t i = 0; i < placement->nqueues; i++)
		placement->queues[i].nplugs = 0;
	return 0;
}

void mmc_placement_resume(struct mmc_placement *placement, uint32_t queue)
{
	struct mmc_placement_queue *at = &placement->queues[queue];
	const struct mmc_predictor *predictor = &placement->predictor;

	if (!placement->active || !at->paused || at->naimed > 0 ||
	    at->nplugs > 0 || at->nsettled > 0 ||
	    queue >= predictor->nsubgroups)
		return;
	at->paused = false;
	at->cursor.loops = placement->loops;
	predictor->seek(predictor->context, &at->cursor, at->nposted);
}

/*
 * Aims a slot at the predicted place, unless another slot occupies the entry of
 * `by_position` that belongs to the place's position.
 */
static void aim(struct mmc_placement_queue *queue, uint32_t slot,
		const struct mmc_prediction *prediction)
{
	uint32_t entry = prediction->position % queue->nslots;
	const struct mmc_prediction *other =
		&queue->slots[queue->by_position[entry]].aim;

	if (other->place != NULL && other->position % queue->nslots == entry)
		return;
	queue->by_position[entry] = slot;
	queue->slots[slot].aim = *prediction;
	queue->naimed++;
}

void mmc_placement_post(struct mmc_placement *placement, uint32_t queue,
			const uint32_t *slots, uint32_t count)
{
	struct mmc_placement_queue *at = &placement->queues[queue];
	const struct mmc_predictor *predictor = &placement->predictor;
	struct mmc_prediction predictions[MMC_PLACEMENT_BATCH];
	bool aims = placement->active && !at->paused;

	MMC_ASSERT(count <= MMC_PLACEMENT_BATCH);
	if (aims)
		predictor->predict(predictor->context, &at->cursor, predictions,
				   count);
	for (uint32_t i = 0; i < count; i++) {
		MMC_ASSERT(!at->slots[slots[i]].posted);
		at->slots[slots[i]].posted = true;
		if (aims && predictions[i].place != NULL)
			aim(at, slots[i], &predictions[i]);
	}
	at->nposted += count;
}

/* ---- completing ---------------------------------------------------------- */

/* Copies the payload that waits in the slot's staging memory to its place. */
static void settle(struct mmc_placement_queue *queue,
		   struct mmc_placement_slot *slot)
{
	memcpy(slot->aim.place, slot->staging, slot->aim.nbytes);
	slot->waiting = false;
	queue->settled[queue->nsettled++] = slot->cookie;
}

/*
 * Returns whether source, length and header are those of the predicted datagram. The
 * engine checks the rest.
 */
static bool is_predicted(const struct mmc_placement *placement,
			 const struct mmc_prediction *aim, uint32_t source,
			 const uint8_t *head, uint32_t nbytes)
{
	const struct mmc_header *expected = &placement->predictor.header;
	struct mmc_header header;

	if (source != aim->source ||
	    nbytes != placement->head_bytes + aim->nbytes)
		return false;
	header = mmc_header_peek(head);
	return (header.channel & MMC_CHANNEL_MASK) == expected->channel &&
	       header.epoch == expected->epoch && header.index == aim->index;
}

/*
 * Copies the payload that has arrived in the slot's place to staging memory. If a
 * payload waits there, the waiting one goes to the place. Returns where the payload
 * that has arrived lies now.
 */
static uint8_t *evacuate(const struct mmc_placement *placement,
			 struct mmc_placement_queue *queue,
			 struct mmc_placement_slot *slot)
{
	memcpy(placement->scratch, slot->aim.place, slot->aim.nbytes);
	if (slot->waiting)
		settle(queue, slot);
	memcpy(slot->staging, placement->scratch, slot->aim.nbytes);
	slot->aim.place = NULL;
	return slot->staging;
}

uint8_t *mmc_placement_complete(struct mmc_placement *placement, uint32_t queue,
				uint32_t slot, uint32_t source,
				const uint8_t *head, uint32_t nbytes)
{
	struct mmc_placement_queue *at = &placement->queues[queue];
	struct mmc_placement_slot *done = &at->slots[slot];
	uint8_t *place = done->aim.place;
	bool predicted;

	at->nposted--;
	done->posted = false;
	if (place == NULL)
		return done->staging;
	predicted = is_predicted(placement, &done->aim, source, head, nbytes);
	at->paused |= !predicted;
	at->naimed--;
	if (predicted && !done->waiting) {
		done->aim.place = NULL;
		return place;
	}
	placement->evacuated += nbytes > placement->head_bytes;
	return evacuate(placement, at, done);
}

void mmc_placement_clear(struct mmc_placement_queue *queue)
{
	for (uint32_t i = 0; i < queue->nslots && queue->naimed > 0; i++) {
		struct mmc_placement_slot *slot = &queue->slots[i];

		if (slot->aim.place == NULL)
			continue;
		if (slot->waiting)
			settle(queue, slot);
		slot->aim.place = NULL;
		queue->naimed--;
	}
	queue->paused = true;
}

void mmc_placement_end(struct mmc_placement *placement, bool forget)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		mmc_placement_clear(&placement->queues[i]);
		if (forget)
			placement->queues[i].nsettled = 0;
	}
	placement->active = false;
}

/* ---- what arrives another way -------------------------------------------- */

bool mmc_placement_defer(struct mmc_placement *placement, const uint8_t *to,
			 const void *from, size_t nbytes, uint64_t cookie)
{
	const struct mmc_predictor *predictor = &placement->predictor;
	struct mmc_placement_queue *queue;
	struct mmc_placement_slot *slot;
	uint32_t subgroup;
	uint32_t position;

	if (!placement->active ||
	    !predictor->locate(predictor->context, to, &subgroup, &position))
		return false;
	queue = &placement->queues[subgroup];
	slot = &queue->slots[queue->by_position[position % queue->nslots]];
	if (slot->aim.place != to)
		return false;
	MMC_ASSERT(!slot->waiting && nbytes == slot->aim.nbytes);
	memcpy(slot->staging, from, nbytes);
	slot->waiting = true;
	slot->cookie = cookie;
	queue->paused = true;
	return true;
}

uint32_t mmc_placement_plugs(const struct mmc_placement_queue *queue)
{
	uint32_t most = mmc_max_u32(queue->nslots / PLUG_SHARE, 1);

	if (!queue->paused || queue->nplugs >= most ||
	    queue->nplugs >= queue->naimed)
		return 0;
	return mmc_min_u32(most, queue->naimed) - queue->nplugs;
}

bool mmc_placement_take_settled(struct mmc_placement *placement,
				uint64_t *cookie)
{
	for (uint32_t i = 0; i < placement->nqueues; i++) {
		struct mmc_placement_queue *queue = &placement->queues[i];

		if (queue->nsettled == 0)
			continue;
		*cookie = queue->settled[--queue->nsettled];
		return true;
	}
	return false;
}
