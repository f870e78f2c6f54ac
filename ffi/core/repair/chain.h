/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The senders of a chain. A receiver follows the active ones, each by itself. Their chunks
 * arrive in order, so a gap before a later chunk of the same sender is a loss once the
 * allowance for reordering has passed. A chunk that a sender's record reports as sent
 * is lost, too, if chunks of that sender cease to arrive. A chunk of another sender
 * proves nothing: that sender may have overtaken this one.
 *
 * Few senders of a chain are active at a time, and only these are followed: those that
 * have begun and not ended, those that were overtaken, and some that may begin soon. If
 * there are more than MMC_CHAIN_SEQUENCES of them, the one with the earliest turn is given
 * up: whatever is missing of its block is late.
 */
#ifndef MMC_CORE_REPAIR_CHAIN_H
#define MMC_CORE_REPAIR_CHAIN_H

#include "core/plan/bitmap.h"
#include "core/plan/schedule.h"
#include "support/timer.h"

/* The most senders of a chain that are followed at a time. */
#define MMC_CHAIN_SEQUENCES 16

/* How many turns are followed beyond the last that has begun. */
#define MMC_CHAIN_AHEAD (MMC_CHAIN_SEQUENCES / 4 + 1)

/* The `turn` of a sequence that is not in use. */
#define MMC_TURN_NONE UINT32_MAX

/*
 * The chunks of one sender, as this rank follows them. `end` and each `..._end` is an
 * offset from the first chunk of the sender's block: the end of those chunks of which
 * its own comment speaks.
 */
struct mmc_sequence {
	uint32_t turn;	  /* the sender's turn in its chain */
	uint32_t rank;	  /* the sender */
	uint32_t first;	  /* the first chunk of its block */
	uint32_t nchunks; /* the chunks of its block */
	uint32_t start;	  /* the position of its first chunk */
	/* Chunks not claimed; of this rank's own block, chunks not sent. */
	uint32_t nleft;
	/* The chunks below this have been sent: the last of them arrived or was told. */
	uint32_t end;
	uint32_t gap_end; /* `end` when gaps were last noted */
	/* The chunks missing below this are late: no window waits for them. */
	uint32_t late_end;
	uint32_t
		noted_late_end; /* `late_end` when late chunks were last noted */
	uint32_t lost_end;	/* the chunks missing below this are lost */
	uint32_t told;		/* chunks sent, as the sender's records say */
	uint64_t told_ns;	/* when `told` last grew */
	/* When the sender was last heard or, if later, when its turn was reached. */
	uint64_t heard_ns;
	/* The time from which chunks missing below `told` count as late. */
	uint64_t late_at_ns;
	/* When to ask about the sender next, if it stays silent. */
	struct mmc_backoff silence;
	/*
	 * When this rank last asked the sender, or asked this rank's parent in the tree
	 * of reports about the sender.
	 */
	uint64_t asked_ns;
	/* Such questions since this rank's parent last answered. */
	uint32_t nvain;
	bool asked; /* a question about the sender is open */
	/* A rank below this one in the tree of reports has asked about the sender. */
	bool wanted;
};

struct mmc_chain {
	struct mmc_sequence *sequences; /* [nsequences] */
	uint32_t nsequences;
	uint32_t nturns;    /* the senders of the chain */
	uint32_t nfollowed; /* the turns below this are followed, or were */
	uint32_t turn;	    /* the first turn of which more is expected */
	uint32_t nbegun;    /* the last turn that has begun, plus one */
	uint32_t seen;	    /* the position after the furthest chunk received */
	uint32_t ndrained;  /* chunks that are claimed, late or lost */
	uint32_t nheard;    /* chunks received by multicast */
	/* All missing chunks of turns below this that were given up are late. */
	uint32_t late_turns;
	/* `late_turns` when late chunks were last noted. */
	uint32_t noted_late_turns;
	/* All missing chunks of turns below this that were given up are lost. */
	uint32_t lost_turns;
};

/*
	 * Returns the most sequences that `nchains` chains with `nsenders` senders in
	 * all can take.
	 */
uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains);

/*
	 * Initializes chain `number` of the schedule with memory for its sequences, and
	 * follows its first senders.
	 */
void mmc_chain_init(struct mmc_chain *chain, struct mmc_sequence *sequences,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/* Ends the chain: no more chunks of any sender are expected by multicast. */
void mmc_chain_end(struct mmc_chain *chain);

/* Returns the sequence of `turn`; NULL if it is not yet, or no longer, followed. */
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

/* Returns whether `turn` was followed, and no more is expected of its sender. */
static inline bool mmc_chain_turn_has_ended(const struct mmc_chain *chain,
					    uint32_t turn)
{
	return turn < chain->nfollowed &&
	       mmc_chain_sequence(chain, turn) == NULL;
}

/*
 * Returns up to which offset in the block of the sender of `turn`, `nchunks` long, all
 * chunks are known to be claimed or lost.
 */
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

/* Marks as late those of a sender's chunks below `end` that are not in `claimed`. */
void mmc_chain_mark_late(struct mmc_chain *chain, struct mmc_sequence *sequence,
			 const struct mmc_bitmap *claimed, uint32_t end);

/* Marks as lost those of a sender's chunks below `end` that are not in `claimed`. */
void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end);

/*
 * Stops following the senders of which no more is expected, and follows the next ones
 * of chain `number` instead.
 */
void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/*
 * Records that `turn` of chain `number` has begun, and follows its sender. If there is
 * no room, gives up the first senders that are followed. Returns the sender's sequence,
 * or NULL if no more is expected of it.
 */
struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns);

#endif
