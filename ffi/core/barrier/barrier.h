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
	/* Bit k: what round k brings has arrived; all ones if rounds bring nothing. */
	uint32_t brought;
	/* MMC_PEER_NONE, or the one rank of which a star's others wait to hear. */
	uint32_t hub;
	uint8_t nrounds; /* ceil(log2 nranks); of a star 1, and none at its hub */
	/* Rounds heard, and what they bring, without a gap from round 0 on. */
	uint8_t rounds;
	uint8_t told; /* rounds in which this rank has told its partner */
	bool is_in;   /* this rank has joined */
};

/* Initializes a barrier that this rank has not joined yet. */
void mmc_barrier_init(struct mmc_barrier *barrier, uint32_t rank,
		      uint32_t nranks);

/*
 * Has each round bring something besides the word of its partner: it counts as heard
 * only when mmc_barrier_bring() has been called for it, too. To be called right after
 * mmc_barrier_init().
 */
void mmc_barrier_demand(struct mmc_barrier *barrier);

/*
 * Makes of a barrier a star: all other ranks wait to hear of `hub` alone, which waits for
 * none, and whose word the caller sends. To be called right after mmc_barrier_init().
 */
void mmc_barrier_make_star(struct mmc_barrier *barrier, uint32_t hub);

/* Joins the barrier: from now on this rank tells its partners. */
void mmc_barrier_join(struct mmc_barrier *barrier);

/*
 * Records the word of `source` that it has joined and has heard its first `rounds`
 * rounds. Returns whether this rank has thereby heard more rounds itself.
 */
bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds);

/*
 * Records that what `source` brings in its round has arrived. Returns what
 * mmc_barrier_hear() does.
 */
bool mmc_barrier_bring(struct mmc_barrier *barrier, uint32_t source);

/* Records that nothing more has to be brought. Returns what mmc_barrier_hear() does. */
bool mmc_barrier_bring_all(struct mmc_barrier *barrier);

/*
 * Returns in which round `source` tells `target`, or MMC_ROUNDS_MAX if it does so in
 * none. The hub of a star tells all, MMC_PEER_ALL as well.
 */
unsigned mmc_barrier_round(const struct mmc_barrier *barrier, uint32_t source,
			   uint32_t target);

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
