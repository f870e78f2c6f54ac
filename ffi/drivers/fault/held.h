/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of datagrams that are held back to pass later. Their memory is from a bounded
 * pool, and they wait in queues, in the order of the times when they are due.
 */
#ifndef MMC_DRIVERS_FAULT_HELD_H
#define MMC_DRIVERS_FAULT_HELD_H

#include "drivers/driver.h"

/*
 * The most datagrams that can be taken from a pool at a time: what 1 Gbit/s brings in 100 ms,
 * and as much again.
 */
#define MMC_FAULT_HELD_MAX 16384

struct mmc_fault_held {
	struct mmc_fault_held *next;
	uint64_t due_ns;
	/*
	 * The datagram is due before `due_ns` if this many others have passed since the
	 * endpoint was opened; UINT64_MAX: never.
	 */
	uint64_t due_passed;
	uint32_t source; /* the rank that sent it, if it was received */
	/* Where it goes to, if it is to be sent; `head` and `body` are not used. */
	struct mmc_parcel parcel;
	uint32_t nbytes;
	uint32_t capacity_bytes; /* allocated at `bytes` */
	uint8_t *bytes;
};

/*
 * A pool begins as all zeros. It keeps the memory of elements that are given back, so
 * it has as many elements as were ever taken at a time.
 */
struct mmc_fault_pool {
	struct mmc_fault_held *free; /* elements that were given back */
	unsigned nheld;		     /* elements that are taken */
};

/* A list of elements in the order of `due_ns`. A queue begins as all zeros. */
struct mmc_fault_queue {
	struct mmc_fault_held *first;
	struct mmc_fault_held *last;
	unsigned nreordered; /* those that have a `due_passed` */
};

/*
 * Takes an element with room for `nbytes`. Returns NULL if MMC_FAULT_HELD_MAX elements
 * are taken already, or memory has run out.
 */
struct mmc_fault_held *mmc_fault_pool_take(struct mmc_fault_pool *pool,
					   uint32_t nbytes);

/* Gives back an element, which must be in no queue. */
void mmc_fault_pool_give(struct mmc_fault_pool *pool,
			 struct mmc_fault_held *held);

/* Empties a queue: gives all its elements back to the pool. */
void mmc_fault_pool_drain(struct mmc_fault_pool *pool,
			  struct mmc_fault_queue *queue);

/* Frees the pool's memory. All that was taken must have been given back. */
void mmc_fault_pool_destroy(struct mmc_fault_pool *pool);

/*
 * Inserts an element by its `due_ns`. Elements that are due at the same time stay in
 * the order in which they were inserted.
 */
void mmc_fault_queue_insert(struct mmc_fault_queue *queue,
			    struct mmc_fault_held *held);

/*
 * Removes and returns the first element that is due: at `now_ns` by its `due_ns`, or by
 * its `due_passed` after `passed` datagrams have passed. Returns NULL if none is due.
 */
struct mmc_fault_held *mmc_fault_queue_due(struct mmc_fault_queue *queue,
					   uint64_t now_ns, uint64_t passed);

/* Returns the earliest `due_ns` of a queue, or MMC_NEVER_NS if the queue is empty. */
uint64_t mmc_fault_queue_deadline_ns(const struct mmc_fault_queue *queue);

#endif
