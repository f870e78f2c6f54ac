/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/fault/held.h"

#include <stdlib.h>

#include "support/assert.h"

static void destroy(struct mmc_fault_held *held)
{
	free(held->bytes);
	free(held);
}

/* Returns an element that was given back, or a new one; NULL if memory has run out. */
static struct mmc_fault_held *free_or_new(struct mmc_fault_pool *pool)
{
	struct mmc_fault_held *held = pool->free;

	if (held == NULL)
		return calloc(1, sizeof(*held));
	pool->free = held->next;
	return held;
}

struct mmc_fault_held *mmc_fault_pool_take(struct mmc_fault_pool *pool,
					   uint32_t nbytes)
{
	uint32_t room_bytes = nbytes > 0 ? nbytes : 1;
	struct mmc_fault_held *held;

	if (pool->nheld == MMC_FAULT_HELD_MAX)
		return NULL;
	held = free_or_new(pool);
	if (held == NULL)
		return NULL;
	if (held->capacity_bytes < room_bytes) {
		uint8_t *bytes = realloc(held->bytes, room_bytes);

		if (bytes == NULL) {
			destroy(held);
			return NULL;
		}
		held->bytes = bytes;
		held->capacity_bytes = room_bytes;
	}
	held->nbytes = nbytes;
	pool->nheld++;
	return held;
}

void mmc_fault_pool_give(struct mmc_fault_pool *pool,
			 struct mmc_fault_held *held)
{
	held->next = pool->free;
	pool->free = held;
	pool->nheld--;
}

void mmc_fault_pool_drain(struct mmc_fault_pool *pool,
			  struct mmc_fault_queue *queue)
{
	while (queue->first != NULL) {
		struct mmc_fault_held *held = queue->first;

		queue->first = held->next;
		mmc_fault_pool_give(pool, held);
	}
}

void mmc_fault_pool_destroy(struct mmc_fault_pool *pool)
{
	MMC_ASSERT(pool->nheld == 0);
	while (pool->free != NULL) {
		struct mmc_fault_held *held = pool->free;

		pool->free = held->next;
		destroy(held);
	}
}

void mmc_fault_queue_insert(struct mmc_fault_queue *queue,
			    struct mmc_fault_held *held)
{
	struct mmc_fault_held **at = &queue->first;

	while (*at != NULL && (*at)->due_ns <= held->due_ns)
		at = &(*at)->next;
	held->next = *at;
	*at = held;
}

struct mmc_fault_held *mmc_fault_queue_due(struct mmc_fault_queue *queue,
					   uint64_t now_ns, uint64_t passed)
{
	struct mmc_fault_held **at = &queue->first;
	struct mmc_fault_held *held;

	while (*at != NULL && (*at)->due_ns > now_ns &&
	       (*at)->due_passed > passed)
		at = &(*at)->next;
	held = *at;
	if (held != NULL)
		*at = held->next;
	return held;
}

uint64_t mmc_fault_queue_deadline_ns(const struct mmc_fault_queue *queue)
{
	return queue->first == NULL ? MMC_NEVER_NS : queue->first->due_ns;
}
