/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracks which chunks of a chain a receiver still expects, separately for each sender.
 * A sender sends its chunks in order. So a later chunk of the same sender shows that an
 * earlier one is missing. The missing chunk is late once the allowance for reordering
 * has passed, and lost if it does not arrive soon after that. Chunks of other senders
 * do not show that a chunk is missing, since a sender may begin before the sender of
 * the previous turn has ended.
 *
 * This rank may also be told how many chunks a sender has sent. If one of the chunks
 * that were sent is missing, it is late after the allowance if the sender pauses, and
 * lost once the sender has been silent for longer (silence.c).
 *
 * Only a few senders of a chain are followed at a time: those that have begun and from
 * which more is expected, those that were passed over when a later sender began, and
 * some that may begin soon. If another sender begins while MMC_CHAIN_SEQUENCES senders
 * are followed, the sender with the earliest turn is given up. The chunks missing from
 * its block are then late.
 */
#ifndef MMC_CORE_REPAIR_CHAIN_H
#define MMC_CORE_REPAIR_CHAIN_H

#include "core/plan/bitmap.h"
#include "core/plan/schedule.h"
#include "support/timer.h"

/* The maximum number of senders of a chain that are followed at a time. */
#define MMC_CHAIN_SEQUENCES 16

/* How many turns are followed in advance, beyond the last turn that has begun. */
#define MMC_CHAIN_AHEAD (MMC_CHAIN_SEQUENCES / 4 + 1)

/* The `turn` of a sequence that is not in use. */
#define MMC_TURN_NONE UINT32_MAX

/*
 * The chunks of one sender, as this rank follows them. `end` and the fields `..._end`
 * are offsets in chunks, counted from the first chunk of the sender's block.
 */
struct mmc_sequence {
	uint32_t turn;	  /* the sender's turn in its chain */
	uint32_t rank;	  /* the sender */
	uint32_t first;	  /* the first chunk of its block */
	uint32_t nchunks; /* how many chunks its block has */
	uint32_t start;	  /* the position of chunk `first` in the chain */
	/*
	 * How many chunks of the block are not claimed yet or, if the block is this
	 * rank's own, not sent yet.
	 */
	uint32_t nleft;
	/*
	 * One past the last chunk of the block that was received, was sent by this rank
	 * itself, or was marked as late. Each chunk below `end` counts as sent.
	 */
	uint32_t end;
	/*
	 * A copy of this sequence's `end`. If a chunk of any sender was skipped,
	 * mmc_loss_gap() lets every sequence copy its own `end`, unless earlier copies
	 * are still in use. Chunks below `gap_end` become late if they are still
	 * missing after the allowance for reordering.
	 */
	uint32_t gap_end;
	/* Missing chunks below this are late: no window waits for them. */
	uint32_t late_end;
	/*
	 * Parity may still mend chunks from here on, as far as parity and the sender's
	 * records have told.
	 */
	uint32_t passed;
	/*
	 * A copy of this sequence's `late_end`. If chunks of any sender became late,
	 * mmc_loss_mark_late() lets every sequence copy its own `late_end`, unless
	 * earlier copies are still in use. Chunks below `noted_late_end` become lost if
	 * they are still missing some time later.
	 */
	uint32_t noted_late_end;
	uint32_t lost_end; /* missing chunks below this are lost */
	/*
	 * How many chunks the sender has sent, as far as the sender or this rank's
	 * parent in the tree of reports has said.
	 */
	uint32_t told;
	uint64_t told_ns; /* when `told` last grew */
	/*
	 * When the sender's current silence began. Usually this is when the sender was
	 * last heard. The silence begins anew when this rank begins to follow the
	 * sender, when the chain reaches the sender's turn, and when chunks that were
	 * reported as sent become late or lost.
	 */
	uint64_t heard_ns;
	/*
	 * When missing chunks below `told` become late, because the sender seems to
	 * pause. MMC_NEVER_NS if the sender does not.
	 */
	uint64_t late_at_ns;
	/* When to ask the next question about the sender if the sender stays silent. */
	struct mmc_backoff silence;
	/*
	 * When this rank last asked the sender itself, or asked its parent in the tree
	 * of reports about the sender.
	 */
	uint64_t asked_ns;
	/*
	 * How many questions about the sender this rank has asked of any rank since the
	 * parent in the tree of reports last said how much the sender has sent.
	 */
	uint32_t nvain;
	bool asked; /* a question about the sender is open */
	/* A rank below this one in the tree of reports has asked about the sender. */
	bool wanted;
};

struct mmc_chain {
	struct mmc_sequence *sequences; /* [nsequences] */
	uint32_t nsequences;
	uint32_t nturns;    /* how many senders the chain has */
	uint32_t nfollowed; /* turns below this are or were followed */
	uint32_t turn;	    /* the first turn from which more is expected */
	uint32_t nbegun;    /* the last turn that has begun, plus one */
	/* The position after the furthest chunk that this rank received or sent. */
	uint32_t seen;
	uint32_t ndrained; /* chunks that are claimed, late or lost */
	uint32_t nheard;   /* chunks received by multicast */
	/*
	 * The last turn whose sender was given up, plus one; 0 if none was. The chunks
	 * missing from the blocks of senders that were given up are late.
	 */
	uint32_t late_turns;
	/* The value that `late_turns` had when mmc_loss_mark_late() last saved it. */
	uint32_t noted_late_turns;
	/*
	 * If a sender was given up and its turn is below this, the chunks missing from
	 * its block are lost. Otherwise they are only late.
	 */
	uint32_t lost_turns;
};

/*
 * Returns how many sequences suffice for up to `nchains` chains that have `nsenders`
 * senders in all.
 */
uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains);

/*
 * Initializes chain `number` of the schedule, and follows its first senders. The chain
 * keeps and uses the first `chain->nsequences` elements of `sequences`.
 */
void mmc_chain_init(struct mmc_chain *chain, struct mmc_sequence *sequences,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/* Ends the chain: no more chunks are expected by multicast, from any sender. */
void mmc_chain_end(struct mmc_chain *chain);

/* Returns the sequence of `turn`, or NULL if its sender is not followed now. */
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

/* Returns whether no more is expected from the sender of `turn`. */
static inline bool mmc_chain_turn_has_ended(const struct mmc_chain *chain,
					    uint32_t turn)
{
	return turn < chain->nfollowed &&
	       mmc_chain_sequence(chain, turn) == NULL;
}

/*
 * Returns an offset in the block of the sender whose turn is `turn`. Each chunk below
 * the offset is known to be claimed or lost. Both the offset and `nchunks`, the length
 * of the block, are in chunks.
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

/* Marks as late the chunks of a sender below `end` that are not in `claimed`. */
void mmc_chain_mark_late(struct mmc_chain *chain, struct mmc_sequence *sequence,
			 const struct mmc_bitmap *claimed, uint32_t end);

/* Marks as lost the chunks of a sender below `end` that are not in `claimed`. */
void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end);

/*
 * Stops following the senders from which no more is expected. Follows the next senders
 * instead. `number` is the chain's number in the schedule.
 */
void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns);

/*
 * Records that `turn` of chain `number` has begun, and follows the sender of this turn.
 * If no sequence is free for the sender, gives up the followed senders with the
 * earliest turns. Returns the sender's sequence, or NULL if no more is expected from
 * the sender.
 */
struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns);

#endif
