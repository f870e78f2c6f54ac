/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dissemination barrier (Hensgen, Finkel, Manber 1988): in round k rank r tells rank
 * r + 2^k all it knows once it has heard the rounds below k, so after ceil(log2 P)
 * one-way trips every rank knows of every other. Merging is idempotent, so P need be no
 * power of two. One barrier lets an operation begin when all have entered, a second one
 * releases buffers when all are done.
 *
 * Each round is told once. A rank that waits asks its partner again (see op.c), which
 * makes good any loss; so the barrier itself needs no clock.
 */
#ifndef MMC_CORE_BARRIER_BARRIER_H
#define MMC_CORE_BARRIER_BARRIER_H

#include "core/types.h"

struct mmc_barrier {
	uint32_t rank;
	uint32_t nranks;
	uint32_t heard;	 /* bit k: the partner of round k has said enough */
	uint32_t joined; /* bit k: the partner of round k has joined at all */
	uint8_t nrounds;
	uint8_t rounds; /* rounds heard without a gap from round 0 on */
	uint8_t told;	/* rounds whose partner has been told */
	bool open;	/* this rank has joined */
};

void mmc_barrier_init(struct mmc_barrier *barrier, uint32_t rank,
		      uint32_t nranks);

/* Joins the barrier: from now on this rank has something to tell. */
void mmc_barrier_join(struct mmc_barrier *barrier);

/*
 * Records that `source` has joined and has heard its first `rounds` rounds. Returns
 * whether this rank's own `rounds` have grown.
 */
bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds);

/*
 * Returns whether a rank is to be told now. If so, writes which, once for each round.
 */
bool mmc_barrier_next(struct mmc_barrier *barrier, uint32_t *peer);

/* Returns whether this rank has joined and knows that all others have. */
static inline bool mmc_barrier_passed(const struct mmc_barrier *barrier)
{
	return barrier->open && barrier->rounds == barrier->nrounds;
}

/* Returns the rank that this one waits for; it must not have heard all rounds. */
uint32_t mmc_barrier_awaited(const struct mmc_barrier *barrier);

/* Returns whether the awaited rank is known to have joined, so that it waits itself. */
bool mmc_barrier_awaited_joined(const struct mmc_barrier *barrier);

#endif
