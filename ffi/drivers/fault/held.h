/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that are kept for later: copies in a bounded pool, and queues of
 * them in the order in which they are due.
 */
#ifndef MMC_DRIVERS_FAULT_HELD_H
#define MMC_DRIVERS_FAULT_HELD_H

#include "drivers/driver.h"

/* Datagrams in a pool: what comes when all are taken is lost. */
#define MMC_FAULT_HELD_MAX 1024

struct mmc_fault_held {
	struct mmc_fault_held *next;
	uint64_t due_ns;
	/* Due as well once this many have passed; UINT64_MAX: never so. */
	uint64_t due_passed;
	uint32_t source;	  /* of a received datagram */
	struct mmc_parcel parcel; /* of one to send, except for its bytes */
	uint32_t nbytes;
	uint32_t capacity_bytes;
	uint8_t *bytes;
};

/* All zeros is an empty pool. Its memory grows to what is held at once. */
struct mmc_fault_pool {
	struct mmc_fault_held *free;
	unsigned nheld;
};

/* All zeros is an empty queue. */
struct mmc_fault_queue {
	struct mmc_fault_held *first;
};

/* Takes one with room for `nbytes`; NULL if the pool or memory is exhausted. */
struct mmc_fault_held *mmc_fault_pool_take(struct mmc_fault_pool *pool,
					   uint32_t nbytes);

void mmc_fault_pool_give(struct mmc_fault_pool *pool,
			 struct mmc_fault_held *held);

/* Gives all of a queue back to the pool. */
void mmc_fault_pool_drain(struct mmc_fault_pool *pool,
			  struct mmc_fault_queue *queue);

/* Frees what was given back, which must be all that was taken. */
void mmc_fault_pool_destroy(struct mmc_fault_pool *pool);

/* Inserts by time; of equal times the first inserted stays first. */
void mmc_fault_queue_insert(struct mmc_fault_queue *queue,
			    struct mmc_fault_held *held);

/*
 * Removes the earliest of those that are due at `now_ns` with `passed`
 * datagrams gone by; NULL if none is.
 */
struct mmc_fault_held *mmc_fault_queue_due(struct mmc_fault_queue *queue,
					   uint64_t now_ns, uint64_t passed);

/* When the next one is due by time; MMC_NEVER_NS if the queue is empty. */
uint64_t mmc_fault_queue_deadline_ns(const struct mmc_fault_queue *queue);

#endif
