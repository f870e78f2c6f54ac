/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of a simulation that are to come, in a heap: the earliest leaves first.
 * Events of the same time leave in the order in which they were added, so that a
 * simulation depends on its seed and nothing else.
 */
#ifndef MMC_DRIVERS_SIM_HEAP_H
#define MMC_DRIVERS_SIM_HEAP_H

#include "core/types.h"

struct mmc_heap_item {
	uint64_t time_ns;
	/* The order among events of the same time. Set by the heap. */
	uint64_t sequence;
	/* The heap only keeps these for its user. */
	uint32_t kind;
	uint32_t target;
	void *subject;
};

struct mmc_heap {
	struct mmc_heap_item *items;
	size_t nitems;
	size_t capacity; /* how many items there is room for */
	uint64_t pushed; /* how many items were ever added */
};

/* Frees the heap's memory, but not the subjects of its items. */
void mmc_heap_free(struct mmc_heap *heap);

/* Adds a copy of `item`. A heap begins as all zeros. Returns 0 or -MMC_ENOMEM. */
int mmc_heap_push(struct mmc_heap *heap, const struct mmc_heap_item *item);

/* Removes the first item and writes it to `item`. Returns false if there is none. */
bool mmc_heap_pop(struct mmc_heap *heap, struct mmc_heap_item *item);

#endif
