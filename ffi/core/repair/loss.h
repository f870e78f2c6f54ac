/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects the chunks that multicast has lost, and decides when to ask for them. A chunk
 * is lost if a later one of the same sender has arrived and the allowance for
 * reordering has passed, or if a silent sender reports it as sent. The record of a
 * sender that goes on sending proves nothing, since control overtakes data in receive
 * buffers. While others' chunks arrive, a silent sender may be waiting for the link, so
 * it is asked rarely.
 *
 * A chunk is asked for after a random delay, during which this rank may hear that it
 * will be multicast again. It is asked for again after one to two retry intervals,
 * which double while nothing arrives.
 */
#ifndef MMC_CORE_REPAIR_LOSS_H
#define MMC_CORE_REPAIR_LOSS_H

#include "core/plan/grouping.h"
#include "core/repair/allowance.h"
#include "core/repair/chain.h"
#include "core/repair/nak.h"
#include "core/repair/policy.h"
#include "support/prng.h"

/* Direct NAKs ask for few chunks at first: repairs for all ranks may share a queue. */
#define MMC_LOSS_DIRECT_CHUNKS 32

struct mmc_loss {
	uint32_t rank;
	struct mmc_schedule schedule;
	const struct mmc_repair_policy *policy;
	struct mmc_chain *chains;	/* [schedule.nchains] */
	uint32_t nopen;			/* chains with more to come */
	struct mmc_sequence *sequences; /* the sequences of all chains */
	struct mmc_bitmap asked;  /* chunks asked for in this retry interval */
	struct mmc_bitmap before; /* chunks asked for in the interval before */
	struct mmc_bitmap lost;	  /* chunks ever asked for or announced */
	/* Chunks that are missing and need not be asked for (mender.h), or NULL. */
	const struct mmc_bitmap *spared;
	/* The groups that parity may mend; none until the flow has begun. */
	struct mmc_grouping grouping;
	uint32_t nlost; /* how many chunks `lost` has */
	struct mmc_prng prng;
	uint64_t begun_ns; /* when the flow began */
	/* A sender silent for this long is asked although the link is busy. */
	uint64_t busy_ns;
	uint64_t heard_ns; /* when a chunk last arrived by multicast */
	/* A sender silent for this long on an idle link is asked for its record. */
	uint64_t quiet_ns;
	uint64_t trip_ns;      /* how long an answer takes on an idle network */
	uint64_t allowance_ns; /* allowance for reordering */
	uint64_t jitter_max_ns; /* longest random delay of a request */
	/* From when on chunks missing below a sender's `gap_end` are late. */
	uint64_t gap_ns;
	/* From when on chunks missing below a `noted_late_end` may be lost. */
	uint64_t overdue_ns;
	/* The chunks heard when each `noted_late_end` was noted. */
	uint32_t overdue_heard;
	uint64_t ask_ns;     /* when to sweep all chunks for lost ones */
	uint64_t silence_ns; /* when to look for silent senders */
	/* Ends a retry interval and begins the next. */
	struct mmc_backoff retry;
	uint64_t retried_ns;	/* when this retry interval began */
	uint64_t asked_ns;	/* when the last NAK was made */
	uint32_t retried_heard; /* chunks heard at `retried_ns` */
	/* How long answers take, smoothed; 0 before the first answer. */
	uint64_t answer_ns;
	uint64_t timed_ns; /* when the NAK was made whose answer is timed */
	/* The last chunk of that NAK; UINT32_MAX: no answer is timed. */
	uint32_t timed_chunk;
	uint32_t nasked; /* retry intervals since nothing was missing */
	/* The most chunks that may be asked for and not yet here. */
	uint32_t budget_chunks;
	/* The same for direct NAKs; it falls when many answers are lost. */
	uint32_t direct_chunks;
	uint32_t waited_chunks; /* chunks asked for and not yet here */
	/* The chunk at which the sweep goes on; nchunks: none is under way. */
	uint32_t sweep_chunk;
	/* The chain at which the look for silent senders goes on; nchains: none is. */
	uint32_t silence_chain;
	uint32_t silence_place; /* the next sequence in that chain */
	bool reached;		/* chunks were heard in the last interval */
	bool missing;		/* this sweep found missing chunks */
	bool held;     /* the budget was used up, and ended the sweep */
	bool hastened; /* hasten() has shortened the retry interval */
	bool drained;  /* a chain's `ndrained` grew by late chunks */
	/*
	 * A sender has begun or ended, or mmc_loss_deadline() may have become earlier,
	 * since mmc_op_poll_loss().
	 */
	bool stirred;
};

/*
 * Returns the longest random delay of a request that is made now. In an operation that
 * has not taken long yet, long delays would be out of proportion.
 */
static inline uint64_t mmc_loss_jitter_ns(const struct mmc_loss *loss,
					  uint64_t now_ns)
{
	return mmc_min_u64(loss->jitter_max_ns,
			   mmc_max_u64(loss->jitter_max_ns / 4,
				       (now_ns - loss->begun_ns) / 64));
}

/* Returns the first retry interval. */
static inline uint64_t mmc_loss_retry_ns(const struct mmc_loss *loss,
					 uint64_t now_ns)
{
	return loss->trip_ns + mmc_loss_jitter_ns(loss, now_ns);
}

/* A longer round trip is the network's, and not a wait for a processor. */
#define MMC_LOSS_LONG_TRIP_NS (10 * MMC_MS_NS)

/*
 * Allows for a round trip that takes longer than was known. A bare round trip would be
 * too short for the answer to be made. A long one is not waited for twice, as chunks
 * that were asked for before the interval would be: it makes an interval of half its
 * length. A request that crosses its answer does no harm, since the repairer rests.
 */
static inline void mmc_loss_stretch(struct mmc_loss *loss, uint64_t trip_ns)
{
	uint64_t retry_ns = trip_ns + trip_ns / 4;

	if (trip_ns > MMC_LOSS_LONG_TRIP_NS)
		retry_ns /= 2;
	loss->trip_ns = mmc_max_u64(loss->trip_ns, retry_ns);
}

/*
 * Returns the bytes of memory that the loss of `nchunks` chunks of `nsenders` senders
 * in at most `nchains` chains takes.
 */
size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nsenders, uint32_t nchains);

struct mmc_loss_config {
	const struct mmc_repair_policy *policy;
	uint32_t rank;
	uint32_t nchunks;
	uint32_t nchains; /* the most chains that the schedule may have */
	uint64_t seed;	  /* of the random delays */
};

/* Initializes `loss` in `memory`, mmc_loss_bytes() long; no chunk is expected yet. */
void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory,
		   const struct mmc_loss_config *config);

/* What is known of the network when the flow begins. */
struct mmc_loss_terms {
	uint64_t srtt_ns;  /* the longest smoothed round trip of any rank */
	uint64_t late_ns;  /* the allowance for slow chunks (flow/path.h) */
	uint64_t batch_ns; /* the time from one batch of a chain to its next */
	/*
	 * The most chunks that may be asked for and not yet here. While more is to come
	 * by multicast, only a quarter of it is used.
	 */
	uint32_t budget_chunks;
};

/* In a shorter silence the sender is most likely waiting for a processor. */
#define MMC_LOSS_QUIET_MIN_NS (300 * MMC_US_NS)

/*
 * Of a longer round trip only so much counts in a silence: however long it takes until a
 * sender hears from here, its chunks come without a pause unless its window is full.
 */
#define MMC_LOSS_QUIET_TRIP_MAX_NS (10 * MMC_MS_NS)

/* Returns for how long a sender on an idle link may be silent. */
static inline uint64_t mmc_loss_quiet_ns(const struct mmc_loss_terms *terms)
{
	uint64_t trip_ns =
		mmc_min_u64(terms->srtt_ns, MMC_LOSS_QUIET_TRIP_MAX_NS);

	return mmc_max_u64(MMC_LOSS_QUIET_MIN_NS, 4 * trip_ns) +
	       mmc_min_u64(terms->batch_ns, MMC_BACKOFF_MAX_NS) +
	       terms->late_ns;
}

/*
 * Begins the flow: chunks are expected as `schedule` plans. Those in `claimed` are here
 * already.
 */
void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed,
		    const struct mmc_loss_terms *terms, uint64_t now_ns);

/*
 * Follows the sender with `block`, whose turn has begun. Returns its sequence, or NULL
 * if no more is expected from it.
 */
struct mmc_sequence *mmc_loss_follow(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const struct mmc_block *block,
				     uint64_t now_ns);

/*
 * Notes how far each sender's chunks are late now, unless an earlier note is still
 * open. mmc_loss_lose_gaps() decides when what was noted is lost.
 */
void mmc_loss_mark_late(struct mmc_loss *loss, uint64_t now_ns);

/*
 * Counts chunks as late that were noted as gaps and are still missing after the
 * allowance. Counts chunks as lost that were noted as late and are still missing after
 * a further window of chunks, or once the link is idle.
 */
void mmc_loss_lose_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint64_t now_ns);

/*
 * Notes how far each sender has sent, since a chunk was skipped. What is still missing
 * of that after the allowance will be late. Does nothing if an earlier note is still
 * open.
 */
__attribute__((cold)) void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns);

/*
 * Records that `count` consecutive chunks arrived by multicast, and for the first time.
 * The first is number `place`, from 0, of its sender's block. `sequence` is the sender's,
 * or NULL if it is not followed any more.
 */
static inline void mmc_loss_hear(struct mmc_loss *loss, struct mmc_chain *chain,
				 struct mmc_sequence *sequence, uint32_t place,
				 uint32_t count, uint64_t now_ns)
{
	uint32_t end = place + count;
	uint32_t before;

	loss->heard_ns = now_ns;
	if (sequence == NULL)
		return;
	before = sequence->end;
	sequence->heard_ns = now_ns;
	if (end <= before)
		return;
	if (place > before) {
		sequence->end = place + 1;
		mmc_loss_gap(loss, now_ns);
	}
	sequence->end = end;
	chain->seen = mmc_max_u32(chain->seen, sequence->start + end);
}

/* What a parity chunk that was sent unasked tells of its sender's block. */
struct mmc_parity_heard {
	uint32_t end; /* all chunks below this were sent */
	bool last;    /* no more parity of these chunks follows */
};

/* Records that a parity chunk of `block` has arrived in its sender's stream. */
__attribute__((cold)) void
mmc_loss_hear_parity(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		     const struct mmc_block *block,
		     const struct mmc_parity_heard *heard, uint64_t now_ns);

/*
 * Returns whether parity is sent unasked, and may mend chunks of this operation. An adapter's
 * processor has no codes.
 */
static inline bool mmc_loss_may_be_mended(const struct mmc_loss *loss)
{
#ifdef MMC_BARE
	(void)loss;
	return false;
#else
	return loss->grouping.parity_chunks > 0;
#endif
}

/*
 * Returns an offset in the block of a sender. The parity of the chunks below it has passed, and
 * will not mend them any more: chunks behind them have arrived, or the sender is silent.
 */
uint32_t mmc_loss_passed(const struct mmc_loss *loss,
			 const struct mmc_sequence *sequence, uint64_t now_ns);

/*
 * Records that all parity of the spans of a sequence up to chunk `end` was sent. What it
 * has not mended may be lost.
 */
void mmc_loss_pass_parity(struct mmc_loss *loss, struct mmc_sequence *sequence,
			  uint32_t end);

/*
 * Stops following the senders of `chain` whose chunks are all here or lost, and follows
 * the next ones.
 */
__attribute__((cold)) void mmc_loss_pass(struct mmc_loss *loss, uint32_t chain,
					 uint64_t now_ns);

/* Records that `chunk` is here, which may have been asked for. */
__attribute__((cold)) void mmc_loss_arrived(struct mmc_loss *loss,
					    uint32_t chunk, uint64_t now_ns);

/*
 * Records that the chunks of `run` are claimed, whichever way they arrived. The first is
 * number `place`, from 0, of its sender's block. `sequence` is the sender's, or NULL if
 * it is not followed. `number` is that of the sender's chain.
 */
static inline void mmc_loss_on_claimed(struct mmc_loss *loss, uint32_t number,
				       struct mmc_sequence *sequence,
				       uint32_t place, struct mmc_run run,
				       uint64_t now_ns)
{
	uint32_t end = place + run.count;
	uint32_t
		undrained; /* the first of its places that does not count yet */

	for (uint32_t i = 0; i < run.count && loss->waited_chunks > 0; i++)
		mmc_loss_arrived(loss, run.first + i, now_ns);
	if (sequence == NULL)
		return;
	undrained = mmc_max_u32(place, sequence->late_end);
	loss->chains[number].ndrained += end - mmc_min_u32(end, undrained);
	sequence->nleft -= run.count;
	if (sequence->nleft == 0)
		mmc_loss_pass(loss, number, now_ns);
}

/*
 * Records that this rank has sent the chunks of `run` of its own `block`, counted from
 * the first of the block.
 */
void mmc_loss_sent(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		   const struct mmc_block *block, struct mmc_run run,
		   uint64_t now_ns);

/*
 * Gives multicast up for this operation: from now on all that is missing is asked for,
 * by `policy`.
 */
void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_policy *policy,
			     uint64_t now_ns);

/*
 * Records that a repair has arrived. More repairs may be on their way behind it, so the
 * present retry interval goes on until they cease, but for no longer than
 * MMC_BACKOFF_MAX_NS.
 */
static inline void mmc_loss_helped(struct mmc_loss *loss, uint64_t now_ns)
{
	uint64_t retry_ns = mmc_loss_retry_ns(loss, now_ns);

	if (loss->retry.at_ns == MMC_NEVER_NS)
		return;
	loss->retry.interval_ns = retry_ns;
	loss->retry.at_ns =
		mmc_max_u64(loss->retry.at_ns,
			    mmc_min_u64(now_ns + retry_ns,
					loss->retried_ns + MMC_BACKOFF_MAX_NS));
}

/*
 * Records that a repairer will multicast `run`, which lies within the operation, so
 * that this rank need not ask for it. Those of its chunks that are not in `claimed`
 * count as lost.
 */
void mmc_loss_suppress(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns);

/*
 * Returns whether a NAK that is made now is a direct one, which the repairer answers by
 * unicast. Only every other repetition is: after a short outage of multicast many ranks
 * lack the same chunks, and these should go to all.
 */
bool mmc_loss_asks_directly(const struct mmc_loss *loss);

/*
 * Returns whether a repairer is to be asked now for chunks that are not in `claimed`.
 * If so, writes the NAK. To be called until it returns false.
 */
bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, struct mmc_nak *nak);

/* Returns how many chunks have arrived by multicast. */
uint32_t mmc_loss_heard(const struct mmc_loss *loss);

/*
 * Returns a sender of a chain of which no chunk arrived by multicast, although it has
 * too many for that to be chance; MMC_PEER_NONE if there is no such chain.
 */
uint32_t mmc_loss_unheard(const struct mmc_loss *loss);

/*
 * Returns when the link will have been idle for as long as a silent sender is waited
 * for: from then on, owners' answers queue behind no multicast. Returns MMC_NEVER_NS
 * unless the policy gathers and most chains have ended.
 */
uint64_t mmc_loss_ending_ns(const struct mmc_loss *loss);

/*
 * Returns when to call mmc_loss_ask() and mmc_silence_ask() again even if nothing
 * arrives.
 */
uint64_t mmc_loss_deadline(const struct mmc_loss *loss);

#endif
