/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dissemination (Hensgen, Finkel, Manber 1988): in round k a rank tells rank
 * r + 2^k all it knows once it has heard the rounds below k, so after
 * ceil(log2 P) one-way trips everybody knows of everybody. What is merged is
 * idempotent, so P need be no power of two. One barrier lets an operation begin
 * when all have entered, a second one releases buffers when all are done.
 *
 * Telling happens once. Whoever waits asks its partner again (see op.c), which
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
	uint8_t rounds; /* heard without a gap from round 0 on */
	uint8_t told;	/* rounds whose partner has been told */
	bool open;	/* this rank has joined */
};

void mmc_barrier_init(struct mmc_barrier *barrier, uint32_t rank,
		      uint32_t nranks);

/* This rank joins: from now on it has something to tell. */
void mmc_barrier_join(struct mmc_barrier *barrier);

/*
 * Takes note that `source` has joined and has heard its first `rounds` rounds.
 * Returns whether this rank's own `rounds` have grown.
 */
bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds);

/*
 * Whether someone is to be told now: if so, writes whom, once for each round.
 */
bool mmc_barrier_next(struct mmc_barrier *barrier, uint32_t *peer);

/* Whether this rank has joined and knows that all others have. */
static inline bool mmc_barrier_passed(const struct mmc_barrier *barrier)
{
	return barrier->open && barrier->rounds == barrier->nrounds;
}

/* Whom a rank waits for that has not heard all rounds. */
uint32_t mmc_barrier_awaited(const struct mmc_barrier *barrier);

/* Whether the awaited rank is known to have joined, so waits itself. */
bool mmc_barrier_awaited_joined(const struct mmc_barrier *barrier);

#endif
