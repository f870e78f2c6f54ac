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
	*queue = (struct mmc_fault_queue){ .first = NULL };
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

/*
 * With one delay for all, every element goes to the end; others are few, and go a short way
 * from the front.
 */
void mmc_fault_queue_insert(struct mmc_fault_queue *queue,
			    struct mmc_fault_held *held)
{
	struct mmc_fault_held **at = &queue->first;

	if (queue->last != NULL && queue->last->due_ns <= held->due_ns)
		at = &queue->last->next;
	while (*at != NULL && (*at)->due_ns <= held->due_ns)
		at = &(*at)->next;
	held->next = *at;
	*at = held;
	if (held->next == NULL)
		queue->last = held;
	queue->nreordered += held->due_passed != UINT64_MAX;
}

/* Returns the first element that is due, or NULL, and writes the element before it. */
static struct mmc_fault_held *find_due(struct mmc_fault_queue *queue,
				       uint64_t now_ns, uint64_t passed,
				       struct mmc_fault_held **before)
{
	struct mmc_fault_held *held = queue->first;

	*before = NULL;
	if (held == NULL || held->due_ns <= now_ns)
		return held;
	if (queue->nreordered == 0)
		return NULL;
	while (held != NULL && held->due_passed > passed) {
		*before = held;
		held = held->next;
	}
	return held;
}

struct mmc_fault_held *mmc_fault_queue_due(struct mmc_fault_queue *queue,
					   uint64_t now_ns, uint64_t passed)
{
	struct mmc_fault_held *before;
	struct mmc_fault_held *held = find_due(queue, now_ns, passed, &before);

	if (held == NULL)
		return NULL;
	if (before == NULL)
		queue->first = held->next;
	else
		before->next = held->next;
	if (held->next == NULL)
		queue->last = before;
	queue->nreordered -= held->due_passed != UINT64_MAX;
	return held;
}

uint64_t mmc_fault_queue_deadline_ns(const struct mmc_fault_queue *queue)
{
	return queue->first == NULL ? MMC_NEVER_NS : queue->first->due_ns;
}
