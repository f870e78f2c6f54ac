/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/queue.h"

#include <stdlib.h>

/* The capacity with which a queue begins: a power of two, like all later ones. */
#define CAPACITY_MIN 16

static int grow(struct mmc_sim_queue *queue)
{
	uint32_t capacity = queue->capacity ? 2 * queue->capacity
					    : CAPACITY_MIN;
	struct mmc_frame **frames = malloc(capacity * sizeof(*frames));

	if (!frames)
		return -MMC_ENOMEM;
	for (uint32_t i = 0; i < queue->nframes; i++)
		frames[i] = queue->frames[(queue->first + i) &
					  (queue->capacity - 1)];
	free(queue->frames);
	queue->frames = frames;
	queue->capacity = capacity;
	queue->first = 0;
	return 0;
}

int mmc_sim_queue_append(struct mmc_sim_queue *queue, struct mmc_frame *frame)
{
	uint32_t at;

	if (queue->nframes == queue->capacity && grow(queue) < 0)
		return -MMC_ENOMEM;
	at = (queue->first + queue->nframes++) & (queue->capacity - 1);
	queue->frames[at] = frame;
	return 0;
}

struct mmc_frame *mmc_sim_queue_take(struct mmc_sim_queue *queue)
{
	struct mmc_frame *frame = queue->frames[queue->first];

	queue->first = (queue->first + 1) & (queue->capacity - 1);
	queue->nframes--;
	return frame;
}
