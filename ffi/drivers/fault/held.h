/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of datagrams for later delivery: a bounded pool, and queues in the order in
 * which they are due.
 */
#ifndef MMC_DRIVERS_FAULT_HELD_H
#define MMC_DRIVERS_FAULT_HELD_H

#include "drivers/driver.h"

/* The most datagrams in a pool; what finds all of them taken is lost. */
#define MMC_FAULT_HELD_MAX 1024

struct mmc_fault_held {
	struct mmc_fault_held *next;
	uint64_t due_ns;
	/* Due early once this many datagrams have passed in all; UINT64_MAX: never. */
	uint64_t due_passed;
	uint32_t source;	  /* of a received datagram */
	struct mmc_parcel parcel; /* of a sent one, but for its bytes */
	uint32_t nbytes;
	uint32_t capacity_bytes;
	uint8_t *bytes;
};

/* An empty pool is all zeros. Its memory grows to the most that is held at once. */
struct mmc_fault_pool {
	struct mmc_fault_held *free;
	unsigned nheld;
};

/* An empty queue is all zeros. */
struct mmc_fault_queue {
	struct mmc_fault_held *first;
};

/*
 * Takes an element with room for `nbytes`. Returns NULL if the pool or memory is
 * exhausted.
 */
struct mmc_fault_held *mmc_fault_pool_take(struct mmc_fault_pool *pool,
					   uint32_t nbytes);

void mmc_fault_pool_give(struct mmc_fault_pool *pool,
			 struct mmc_fault_held *held);

/* Gives all elements of a queue back to the pool. */
void mmc_fault_pool_drain(struct mmc_fault_pool *pool,
			  struct mmc_fault_queue *queue);

/* Frees the pool's memory. All that was taken must have been given back. */
void mmc_fault_pool_destroy(struct mmc_fault_pool *pool);

/* Inserts by due time; elements of equal time keep the order of insertion. */
void mmc_fault_queue_insert(struct mmc_fault_queue *queue,
			    struct mmc_fault_held *held);

/*
 * Removes and returns the earliest element that is due at `now_ns` after `passed`
 * datagrams; NULL if none is.
 */
struct mmc_fault_held *mmc_fault_queue_due(struct mmc_fault_queue *queue,
					   uint64_t now_ns, uint64_t passed);

/* Returns when the next element is due by time; MMC_NEVER_NS if the queue is empty. */
uint64_t mmc_fault_queue_deadline_ns(const struct mmc_fault_queue *queue);

#endif
