/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dissemination (Hensgen, Finkel, Manber 1988): in round k a rank tells rank
 * r + 2^k all it knows once it has heard the rounds below k, so after
 * ceil(log2 P) one-way trips everybody knows of everybody. What is merged is
 * idempotent, so P need be no power of two. One gate lets an operation begin
 * when all have entered, a second one releases buffers when all are done.
 *
 * Telling happens once. Whoever waits asks its partner again (see op.c), which
 * makes good any loss; so the gate itself needs no clock.
 */
#ifndef MMC_CORE_BARRIER_H
#define MMC_CORE_BARRIER_H

#include "core/types.h"

struct mmc_gate {
	uint32_t rank;
	uint32_t nranks;
	uint32_t heard;	 /* bit k: the partner of round k has said enough */
	uint32_t joined; /* bit k: the partner of round k has joined at all */
	uint8_t nrounds;
	uint8_t rounds; /* heard without a gap from round 0 on */
	uint8_t told;	/* rounds whose partner has been told */
	bool open;	/* this rank has joined */
};

void mmc_gate_init(struct mmc_gate *gate, uint32_t rank, uint32_t nranks);

/* This rank joins: from now on it has something to tell. */
void mmc_gate_join(struct mmc_gate *gate);

/*
 * Takes note that `source` has joined and has heard its first `rounds` rounds.
 * Returns whether this rank's own `rounds` have grown.
 */
bool mmc_gate_hear(struct mmc_gate *gate, uint32_t source, uint32_t rounds);

/*
 * Whether someone is to be told now: if so, writes whom, once for each round.
 */
bool mmc_gate_next(struct mmc_gate *gate, uint32_t *peer);

/* Whether this rank has joined and knows that all others have. */
static inline bool mmc_gate_passed(const struct mmc_gate *gate)
{
	return gate->open && gate->rounds == gate->nrounds;
}

/* Whom a rank waits for that has not heard all rounds. */
uint32_t mmc_gate_awaited(const struct mmc_gate *gate);

/* Whether the awaited rank is known to have joined, so waits itself. */
bool mmc_gate_awaited_joined(const struct mmc_gate *gate);

#endif
