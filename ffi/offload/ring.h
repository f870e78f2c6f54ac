/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of the offload ABI (mpimcast/abi/offload.h), of which one side is the producer and
 * the other one the consumer. The entries lie elsewhere: entry n is at n modulo the
 * ring's length, a power of two.
 */
#ifndef MMC_OFFLOAD_RING_H
#define MMC_OFFLOAD_RING_H

#include <mpimcast/abi/offload.h>
#include <stdbool.h>

/*
 * Writes a word that the other side looks at before it sleeps, or after it was armed. It
 * and mmc_ring_see() are sequentially consistent: each side writes its word before it
 * looks at the other's, so at least one of them sees what the other one has written. With
 * less, both could miss that, and a ring would be lost.
 */
static inline void mmc_ring_show(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* Returns a word that the other side writes by mmc_ring_show(). */
static inline uint32_t mmc_ring_see(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* Returns how many entries the consumer can take. The producer may be wrong or hostile. */
static inline uint32_t mmc_ring_count(const struct mmc_offload_ring *ring)
{
	return mmc_ring_see(&ring->nproduced) - ring->nconsumed;
}

/* Returns how many entries the producer can put in, of `nentries` in the ring. */
static inline uint32_t mmc_ring_room(const struct mmc_offload_ring *ring,
				     uint32_t nentries)
{
	return nentries - (ring->nproduced -
			   __atomic_load_n(&ring->nconsumed, __ATOMIC_ACQUIRE));
}

/* Publishes the entry that the producer has just written. */
static inline void mmc_ring_produce(struct mmc_offload_ring *ring)
{
	mmc_ring_show(&ring->nproduced, ring->nproduced + 1);
}

/* Gives the entry back to the producer that the consumer has just read. */
static inline void mmc_ring_consume(struct mmc_offload_ring *ring)
{
	__atomic_store_n(&ring->nconsumed, ring->nconsumed + 1,
			 __ATOMIC_RELEASE);
}

/* Arms the consumer, which must look once more whether something has come. */
static inline void mmc_ring_arm(struct mmc_offload_ring *ring)
{
	mmc_ring_show(&ring->armed, 1);
}

/*
 * Returns whether the consumer must be rung for, and disarms it. The producer calls
 * this after it has published something.
 */
static inline bool mmc_ring_must_ring(struct mmc_offload_ring *ring)
{
	return mmc_ring_see(&ring->armed) != 0 &&
	       __atomic_exchange_n(&ring->armed, 0, __ATOMIC_RELAXED) != 0;
}

#endif
