/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dissemination barrier (Hensgen, Finkel, Manber 1988). In round k, rank r tells rank
 * r + 2^k all that it knows, once it has heard the rounds below k. So after ceil(log2
 * P) one-way trips every rank knows of every other. What is told twice does no harm, so
 * P need be no power of two. One barrier lets an operation begin when all have entered,
 * a second one releases buffers when all are done.
 *
 * Each round is told once. A rank that waits for its partner asks it
 * (core/operation/output.c), which makes good any loss, so the barrier itself needs no
 * clock.
 */
#ifndef MMC_CORE_BARRIER_BARRIER_H
#define MMC_CORE_BARRIER_BARRIER_H

#include "core/types.h"

struct mmc_barrier {
	uint32_t rank;
	uint32_t nranks;
	/* Bit k: the rank that tells this one in round k had heard all rounds below. */
	uint32_t heard;
	/* Bit k: the rank that tells this one in round k has joined. */
	uint32_t joined;
	uint8_t nrounds; /* ceil(log2 nranks) */
	uint8_t rounds;	 /* rounds heard without a gap from round 0 on */
	uint8_t told;	 /* rounds in which this rank has told its partner */
	bool is_in;	 /* this rank has joined */
};

/* Initializes a barrier that this rank has not joined yet. */
void mmc_barrier_init(struct mmc_barrier *barrier, uint32_t rank,
		      uint32_t nranks);

/* Joins the barrier: from now on this rank tells its partners. */
void mmc_barrier_join(struct mmc_barrier *barrier);

/*
 * Records the word of `source` that it has joined and has heard its first `rounds`
 * rounds. Returns whether this rank has thereby heard more rounds itself.
 */
bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds);

/*
 * Returns whether this rank must tell another one now. If so, writes which to `peer`,
 * and counts that round as told. To be called until it returns false.
 */
bool mmc_barrier_next(struct mmc_barrier *barrier, uint32_t *peer);

/* Returns whether this rank has joined and knows that all others have. */
static inline bool mmc_barrier_passed(const struct mmc_barrier *barrier)
{
	return barrier->is_in && barrier->rounds == barrier->nrounds;
}

/*
 * Returns the rank that this one waits for. This rank must not have heard all rounds.
 */
uint32_t mmc_barrier_awaited(const struct mmc_barrier *barrier);

/* Returns whether the awaited rank has joined. It then awaits yet another rank. */
bool mmc_barrier_awaited_has_joined(const struct mmc_barrier *barrier);

#endif
