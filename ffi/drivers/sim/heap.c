/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/heap.h"

#include <stdlib.h>

/*
 * The children of a node. Four lie side by side in memory, and the heap has half as
 * many levels as a binary one.
 */
#define CHILDREN 4

/* The capacity with which a heap begins, in items. */
#define CAPACITY_MIN 256

/* Returns whether `a` leaves the heap before `b`. */
static bool before(const struct mmc_heap_item *a, const struct mmc_heap_item *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->sequence < b->sequence;
}

void mmc_heap_free(struct mmc_heap *heap)
{
	free(heap->items);
	*heap = (struct mmc_heap){ 0 };
}

/* Makes room for another item. Returns 0 or -MMC_ENOMEM. */
static int reserve(struct mmc_heap *heap)
{
	size_t capacity = heap->capacity ? 2 * heap->capacity : CAPACITY_MIN;
	struct mmc_heap_item *items;

	if (heap->nitems < heap->capacity)
		return 0;
	items = realloc(heap->items, capacity * sizeof(*items));
	if (!items)
		return -MMC_ENOMEM;
	heap->items = items;
	heap->capacity = capacity;
	return 0;
}

int mmc_heap_push(struct mmc_heap *heap, const struct mmc_heap_item *item)
{
	struct mmc_heap_item added = *item;
	size_t hole;

	if (reserve(heap) < 0)
		return -MMC_ENOMEM;
	added.sequence = heap->pushed++;
	hole = heap->nitems++;
	while (hole > 0) {
		size_t parent = (hole - 1) / CHILDREN;

		if (!before(&added, &heap->items[parent]))
			break;
		heap->items[hole] = heap->items[parent];
		hole = parent;
	}
	heap->items[hole] = added;
	return 0;
}

/* Returns the index of the earliest child of `parent`, or `nitems` if it has none. */
static size_t first_child(const struct mmc_heap *heap, size_t parent)
{
	size_t from = parent * CHILDREN + 1;
	size_t first = from;

	if (from >= heap->nitems)
		return heap->nitems;
	for (size_t i = from + 1; i < from + CHILDREN && i < heap->nitems; i++)
		if (before(&heap->items[i], &heap->items[first]))
			first = i;
	return first;
}

bool mmc_heap_pop(struct mmc_heap *heap, struct mmc_heap_item *item)
{
	struct mmc_heap_item last;
	size_t hole = 0;

	if (heap->nitems == 0)
		return false;
	*item = heap->items[0];
	last = heap->items[--heap->nitems];
	for (;;) {
		size_t child = first_child(heap, hole);

		if (child == heap->nitems ||
		    !before(&heap->items[child], &last))
			break;
		heap->items[hole] = heap->items[child];
		hole = child;
	}
	if (heap->nitems > 0)
		heap->items[hole] = last;
	return true;
}
