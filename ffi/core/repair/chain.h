/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver follows the senders of a chain one by one. A sender's chunks arrive in
 * order, so a gap before a later chunk of the same sender is a loss once the
 * allowance for reordering has passed. So is a chunk that the sender's record reports
 * as sent when no more chunks arrive. A chunk of another sender proves nothing: that
 * sender may have overtaken this one.
 *
 * Few senders of a chain are active at a time, and only these are followed: those who
 * have begun and not ended, or were overtaken, and some who may begin soon. When there
 * are more than MMC_CHAIN_SEQUENCES, the first is given up: all that is missing of it is
 * late.
 */
#ifndef MMC_CORE_REPAIR_CHAIN_H
#define MMC_CORE_REPAIR_CHAIN_H

#include "core/plan/bitmap.h"
#include "core/plan/schedule.h"
#include "support/timer.h"

/* The sequences that a chain keeps at a time. */
#define MMC_CHAIN_SEQUENCES 16

/* The turns that are followed beyond the last that has begun. */
#define MMC_CHAIN_AHEAD (MMC_CHAIN_SEQUENCES / 4 + 1)

/* In place of a sequence's turn: it is nobody's. */
#define MMC_TURN_NONE UINT32_MAX

/* The chunks of one sender; they are counted from the first of its block. */
struct mmc_sequence {
	uint32_t turn; /* of the sender in its chain */
	uint32_t rank;
	uint32_t first; /* chunk of the block */
	uint32_t nchunks;
	uint32_t start; /* the position of the first in the chain */
	uint32_t nleft; /* chunks that are not claimed; of the own, not sent */
	uint32_t end;	/* chunks below have been sent: a later one came */
	uint32_t gap_end;  /* what is missing below was, when gaps were noted */
	uint32_t late_end; /* what is missing below is late: windows go on */
	uint32_t overdue_end; /* `late_end` when late chunks were noted */
	uint32_t lost_end;    /* what is missing below is lost */
	uint32_t told;	      /* chunks that have been sent, a record says */
	uint64_t told_ns;     /* when `told` last grew */
	uint64_t heard_ns;    /* when it was heard of last, or its turn came */
	uint64_t trust_ns;    /* when what is missing below `told` is lost */
	struct mmc_backoff
		silence;   /* since `heard_ns`, when that was long ago */
	uint64_t asked_ns; /* when it, or the parent about it, was asked last */
	uint32_t nvain;	   /* questions since the parent had a word about it */
	bool asked;	   /* about it, and it has not answered */
	bool wanted;	   /* a rank below misses it too */
};

struct mmc_chain {
	struct mmc_sequence *sequences; /* [nsequences], in no order */
	uint32_t nsequences;
	uint32_t nturns;
	uint32_t nfollowed;  /* turns that are, or were */
	uint32_t turn;	     /* of the first sender of whom more is to come */
	uint32_t nbegun;     /* of later turns none has been heard of */
	uint32_t seen;	     /* behind the furthest position that came */
	uint32_t npassed;    /* chunks that are here, late or lost */
	uint32_t nheard;     /* chunks that came by multicast */
	uint32_t late_turns; /* turns below that are given up are late */
	uint32_t overdue_turns; /* `late_turns` when they were noted */
	uint32_t lost_turns;	/* turns below that are given up are lost */
};

/* The sequences that chains of a layout take at most. */
uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains);

/* Begins to follow the first senders of the chain with `number`. */
void mmc_chain_init(struct mmc_chain *chain, struct mmc_sequence *sequences,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/* Nothing more comes of any sender. */
void mmc_chain_end(struct mmc_chain *chain);

/* The sequence of a turn; NULL if it is not followed yet, or no more. */
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

/* Whether nothing more comes of the sender of a turn. */
static inline bool mmc_chain_is_over(const struct mmc_chain *chain,
				     uint32_t turn)
{
	return turn < chain->nfollowed &&
	       mmc_chain_sequence(chain, turn) == NULL;
}

/* How many first chunks of a turn's block are here or lost. */
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

/* No window waits any more for the chunks below `end` that are not in `claimed`. */
void mmc_chain_delay(struct mmc_chain *chain, struct mmc_sequence *sequence,
		     const struct mmc_bitmap *claimed, uint32_t end);

/* Counts the chunks below `end` that are not in `claimed` as lost. */
void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end);

/* Follows the next senders in place of those of whom nothing more comes. */
void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/*
 * Follows the sender of `turn`, which has begun, giving up on earlier ones if need
 * be. Returns its sequence, or NULL if nothing more comes of it.
 */
struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns);

#endif
