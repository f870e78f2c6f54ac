/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events to come, earliest first. Events of one time leave in the order in which
 * they were added, so that a run depends on its seed and nothing else.
 */
#ifndef MMC_DRIVERS_SIM_HEAP_H
#define MMC_DRIVERS_SIM_HEAP_H

#include "core/types.h"

struct mmc_heap_item {
	uint64_t time_ns;
	uint64_t sequence; /* set by the heap */
	uint32_t kind;
	uint32_t target;
	void *subject;
};

struct mmc_heap {
	struct mmc_heap_item *items;
	size_t nitems;
	size_t capacity;
	uint64_t pushed;
};

/* Frees the heap's memory, but not the subjects of its items. */
void mmc_heap_free(struct mmc_heap *heap);

/* Adds a copy of `item`. A heap of zeros is empty. Returns 0 or -MMC_ENOMEM. */
int mmc_heap_push(struct mmc_heap *heap, const struct mmc_heap_item *item);

/* Takes the first item out. Returns false if there is none. */
bool mmc_heap_pop(struct mmc_heap *heap, struct mmc_heap_item *item);

#endif
