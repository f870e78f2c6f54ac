/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The senders of a chain as a receiver follows them, one by one. A sender's chunks
 * arrive in order, so a gap before a later chunk of the same sender is a loss once the
 * allowance for reordering has passed. A chunk that the sender's record reports as sent
 * is a loss too when no more chunks arrive. A chunk of another sender proves nothing:
 * that sender may have overtaken this one.
 *
 * Few senders of a chain are active at a time, and only these are followed: senders
 * that have begun and not ended, senders that were overtaken, and some that may begin
 * soon. When there are more than MMC_CHAIN_SEQUENCES, the first is given up: all that
 * is missing of it is late.
 */
#ifndef MMC_CORE_REPAIR_CHAIN_H
#define MMC_CORE_REPAIR_CHAIN_H

#include "core/plan/bitmap.h"
#include "core/plan/schedule.h"
#include "support/timer.h"

/* The sequences that a chain keeps at a time. */
#define MMC_CHAIN_SEQUENCES 16

/* How many turns beyond the last that has begun are followed. */
#define MMC_CHAIN_AHEAD (MMC_CHAIN_SEQUENCES / 4 + 1)

/* The turn of a sequence that no sender uses. */
#define MMC_TURN_NONE UINT32_MAX

/* The chunks of one sender, counted from the first of its block. */
struct mmc_sequence {
	uint32_t turn; /* the sender's turn in its chain */
	uint32_t rank;
	uint32_t first; /* first chunk of its block */
	uint32_t nchunks;
	uint32_t start; /* position of its first chunk */
	/* Chunks not claimed; of this rank's own block, chunks not sent. */
	uint32_t nleft;
	/* Chunks below have been sent: a later one arrived, or a record said so. */
	uint32_t end;
	uint32_t gap_end; /* `end` when gaps were noted */
	/* Chunks missing below are late: no window waits for them. */
	uint32_t late_end;
	uint32_t overdue_end; /* `late_end` when late chunks were noted */
	uint32_t lost_end;    /* chunks missing below are lost */
	uint32_t told;	      /* chunks sent, according to a record */
	uint64_t told_ns;     /* when `told` last grew */
	/* When the sender was last heard, or when its turn was reached. */
	uint64_t heard_ns;
	/* When the chunks missing below `told` count as late. */
	uint64_t trust_ns;
	/* Questions about the sender's silence since `heard_ns`. */
	struct mmc_backoff silence;
	/* When the sender, or the parent about it, was last asked. */
	uint64_t asked_ns;
	/* Questions since the parent last answered about the sender. */
	uint32_t nvain;
	bool asked; /* a question about the sender is open */
	/* A rank below in the tree of reports misses the sender too. */
	bool wanted;
};

struct mmc_chain {
	struct mmc_sequence *sequences; /* [nsequences], in no order */
	uint32_t nsequences;
	uint32_t nturns;
	uint32_t nfollowed; /* turns followed now or before */
	uint32_t turn;	    /* the first turn with more to come */
	/* No turn from this one on has been heard of. */
	uint32_t nbegun;
	uint32_t seen;		/* one past the furthest position received */
	uint32_t npassed;	/* chunks here, late or lost */
	uint32_t nheard;	/* chunks received by multicast */
	uint32_t late_turns;	/* turns below that were given up are late */
	uint32_t overdue_turns; /* `late_turns` when late chunks were noted */
	uint32_t lost_turns;	/* turns below that were given up are lost */
};

/* Returns the most sequences that the chains of a layout take. */
uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains);

/* Initializes the chain of this `number`, and follows its first senders. */
void mmc_chain_init(struct mmc_chain *chain, struct mmc_sequence *sequences,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/* Ends the chain: no more is expected of any sender. */
void mmc_chain_end(struct mmc_chain *chain);

/* Returns the sequence of a turn; NULL if it is not followed yet, or not any more. */
static inline struct mmc_sequence *
mmc_chain_sequence(const struct mmc_chain *chain, uint32_t turn)
{
	uint32_t n = chain->nsequences;

	for (uint32_t i = 0; i < n; i++) {
		struct mmc_sequence *sequence =
			&chain->sequences[(turn + i) % n];

		if (sequence->turn == turn)
			return sequence;
	}
	return NULL;
}

/* Returns whether no more is expected of the sender of a turn. */
static inline bool mmc_chain_is_over(const struct mmc_chain *chain,
				     uint32_t turn)
{
	return turn < chain->nfollowed &&
	       mmc_chain_sequence(chain, turn) == NULL;
}

/* Returns how many chunks from the first of a turn's block on are here or lost. */
static inline uint32_t mmc_chain_lost_end(const struct mmc_chain *chain,
					  uint32_t turn, uint32_t nchunks)
{
	const struct mmc_sequence *sequence = mmc_chain_sequence(chain, turn);

	if (sequence != NULL)
		return sequence->lost_end;
	if (turn >= chain->lost_turns && turn < chain->late_turns)
		return 0;
	return turn < chain->nfollowed ? nchunks : 0;
}

/* Counts the chunks below `end` that are not in `claimed` as late. */
void mmc_chain_delay(struct mmc_chain *chain, struct mmc_sequence *sequence,
		     const struct mmc_bitmap *claimed, uint32_t end);

/* Counts the chunks below `end` that are not in `claimed` as lost. */
void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end);

/* Follows the next senders in place of those of which no more is expected. */
void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/*
 * Follows the sender of `turn`, which has begun, and gives up earlier ones if need be.
 * Returns its sequence, or NULL if no more is expected of it.
 */
struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns);

#endif
