/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects the chunks that multicast has lost, and decides when to ask for them. A chunk
 * is lost if it is missing in a sender's sequence for longer than an allowance for
 * reordering, or if a silent sender reports it as sent. The record of a sender that
 * goes on sending proves nothing, since control overtakes data in receive buffers.
 * While others' chunks arrive, a silent sender may be waiting for the link, so it is
 * asked rarely.
 *
 * A chunk is asked for after a random delay in which this rank may hear of others'
 * requests for it, and again only after one to two retry intervals, which double while
 * nothing arrives.
 */
#ifndef MMC_CORE_REPAIR_LOSS_H
#define MMC_CORE_REPAIR_LOSS_H

#include "core/repair/chain.h"
#include "core/repair/nak.h"
#include "core/repair/policy.h"
#include "support/prng.h"

/*
 * The number of chunks in the first direct NAKs: few, since the repairs of all ranks
 * may share a queue.
 */
#define MMC_LOSS_DIRECT_CHUNKS 32

struct mmc_loss {
	uint32_t rank;
	struct mmc_schedule schedule;
	const struct mmc_repair_policy *policy;
	struct mmc_chain *chains;
	uint32_t nopen;			/* chains with more to come */
	struct mmc_sequence *sequences; /* the sequences of all chains */
	struct mmc_bitmap asked;  /* chunks asked for in this retry interval */
	struct mmc_bitmap before; /* chunks asked for in the interval before */
	struct mmc_bitmap lost;	  /* chunks ever asked for or announced */
	uint32_t nlost;		  /* their number */
	struct mmc_prng prng;
	uint64_t begun_ns; /* when the flow began */
	/* A sender silent for this long is asked although the link is busy. */
	uint64_t busy_ns;
	uint64_t heard_ns; /* last arrival of a multicast chunk */
	/* A sender silent for this long on an idle link is asked for its record. */
	uint64_t quiet_ns;
	uint64_t trip_ns;	/* how long an answer is under way */
	uint64_t allowance_ns;	/* allowance for reordering */
	uint64_t jitter_max_ns; /* longest random delay of a request */
	/* When the chunks missing below `gap_end` count as late. */
	uint64_t gap_ns;
	/* When the chunks missing below `overdue_end` may count as lost. */
	uint64_t overdue_ns;
	/* The chunks heard when `overdue_end` was noted. */
	uint32_t overdue_heard;
	uint64_t ask_ns;     /* when to look for lost chunks */
	uint64_t silence_ns; /* when to look for silent senders */
	struct mmc_backoff retry;
	uint64_t retried_ns;	/* when this retry interval began */
	uint64_t asked_ns;	/* when the last request was made */
	uint32_t retried_heard; /* chunks heard at `retried_ns` */
	/* How long answers take, smoothed; 0 before the first answer. */
	uint64_t answer_ns;
	uint64_t timed_ns; /* when the timed request was made */
	/* The last chunk of the timed request; UINT32_MAX: no request is timed. */
	uint32_t timed_chunk;
	uint32_t nasked; /* the retry intervals since nothing was missing */
	/* The most chunks that may be asked for and not yet here. */
	uint32_t budget_chunks;
	/* The same limit for direct NAKs; it falls when many answers are lost. */
	uint32_t direct_chunks;
	uint32_t waited_chunks; /* chunks asked for and not yet here */
	/* The chunk at which the sweep for lost chunks goes on; nchunks: no sweep. */
	uint32_t sweep_chunk;
	/* The chain in which the look for silent senders goes on; nchains: no look. */
	uint32_t silence_chain;
	uint32_t silence_place; /* the next sequence in that chain */
	bool reached;		/* chunks were heard in the last interval */
	bool missing;		/* this sweep found missing chunks */
	bool held;		/* the budget ended the sweep */
	bool hastened;		/* requests were hastened at the end */
	bool passed;		/* a chain's `npassed` grew by late chunks */
};

/*
 * Returns the longest random delay of a request now: an operation that has not taken
 * long needs no long delay.
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

/*
 * The bytes of memory for `nchunks` chunks of `nsenders` in at most `nchains` chains.
 */
size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nsenders, uint32_t nchains);

struct mmc_loss_config {
	const struct mmc_repair_policy *policy;
	uint32_t rank;
	uint32_t nchunks;
	uint32_t nchains; /* the most that the schedule may have */
	uint64_t seed;	  /* of the random delays */
};

/* Initializes `loss` in `memory`, mmc_loss_bytes() long; no chunk is expected yet. */
void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory,
		   const struct mmc_loss_config *config);

/* What is known of the network when the flow begins. */
struct mmc_loss_terms {
	uint64_t srtt_ns;  /* the largest smoothed round trip */
	uint64_t late_ns;  /* the allowance learnt from chunks lost too soon */
	uint64_t batch_ns; /* from one batch of a chain to its next */
	/*
	 * The most chunks that may be asked for and not yet here; a quarter of it while
	 * more is to come by multicast.
	 */
	uint32_t budget_chunks;
};

/*
 * Expects chunks from now on, as planned by `schedule`; those in `claimed` are here
 * already.
 */
void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed,
		    const struct mmc_loss_terms *terms, uint64_t now_ns);

/*
 * Returns the sequence of the sender with `block`, which has begun, or NULL if no more
 * is expected of it.
 */
struct mmc_sequence *mmc_loss_follow(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const struct mmc_block *block,
				     uint64_t now_ns);

/*
 * Notes which chunks are late, unless a note is open: mmc_loss_lose_gaps() decides when
 * they are lost.
 */
void mmc_loss_mark_late(struct mmc_loss *loss, uint64_t now_ns);

/*
 * Counts the noted gaps that are still open after the allowance as late, and late
 * chunks as lost once a window of chunks follows them or the link is idle.
 */
void mmc_loss_lose_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint64_t now_ns);

/* Notes that chunks below one just heard are missing: they will be asked for. */
__attribute__((cold)) void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns);

/*
 * Records that the `place`th chunk of a sender arrived for the first time, by
 * multicast; `sequence` is NULL if the sender is not followed any more.
 */
static inline void mmc_loss_hear(struct mmc_loss *loss, struct mmc_chain *chain,
				 struct mmc_sequence *sequence, uint32_t place,
				 uint64_t now_ns)
{
	uint32_t end;

	loss->heard_ns = now_ns;
	if (sequence == NULL)
		return;
	end = sequence->end;
	sequence->heard_ns = now_ns;
	if (place < end)
		return;
	sequence->end = place + 1;
	chain->seen = mmc_max_u32(chain->seen, sequence->start + place + 1);
	if (place > end)
		mmc_loss_gap(loss, now_ns);
}

/*
 * Stops following the senders of `chain` whose chunks are all here or lost, and expects
 * the next ones.
 */
__attribute__((cold)) void mmc_loss_pass(struct mmc_loss *loss, uint32_t chain,
					 uint64_t now_ns);

/* Records that `chunk`, which may have been asked for, is here. */
__attribute__((cold)) void mmc_loss_came(struct mmc_loss *loss, uint32_t chunk,
					 uint64_t now_ns);

/*
 * Records that the `place`th chunk of a sender is claimed, whichever way it arrived.
 * `sequence` is the sender's, or NULL if the sender is not followed.
 */
static inline void mmc_loss_on_claimed(struct mmc_loss *loss, uint32_t chain,
				       struct mmc_sequence *sequence,
				       uint32_t place, uint32_t chunk,
				       uint64_t now_ns)
{
	if (loss->waited_chunks > 0)
		mmc_loss_came(loss, chunk, now_ns);
	if (sequence == NULL)
		return;
	loss->chains[chain].npassed += place >= sequence->late_end;
	if (--sequence->nleft == 0)
		mmc_loss_pass(loss, chain, now_ns);
}

/*
 * Records that this rank, with `block`, has sent the chunks of `run`, counted from the
 * first of the block.
 */
void mmc_loss_sent(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		   const struct mmc_block *block, struct mmc_run run,
		   uint64_t now_ns);

/* Expects nothing by multicast: all that is missing is to be asked for. */
void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_policy *policy,
			     uint64_t now_ns);

/*
 * Records that a repair has arrived. Further repairs may be on their way behind it, so
 * the next retry waits until they cease, for MMC_BACKOFF_MAX_NS at most.
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
 * that this rank need not ask for it. Its chunks that are not in `claimed` are lost.
 */
void mmc_loss_suppress(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns);

/*
 * Returns whether repairers are to answer by unicast. After a short outage of
 * multicast, the chunks that many ranks still lack must go to all, so every other
 * request leaves the choice to the repairer.
 */
bool mmc_loss_asks_directly(const struct mmc_loss *loss);

/*
 * Returns whether a repairer is to be asked now for chunks not in `claimed`. If so,
 * writes the NAK for it. Call until it returns false.
 */
bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, struct mmc_nak *nak);

/* Returns how many chunks have arrived by multicast. */
uint32_t mmc_loss_heard(const struct mmc_loss *loss);

/*
 * Returns a sender in a chain from which no chunk arrived by multicast although others
 * send enough there to tell; MMC_PEER_ALL if every chain was heard.
 */
uint32_t mmc_loss_unheard(const struct mmc_loss *loss);

/*
 * Returns when the link has been idle for as long as a silent sender is waited for:
 * owners' answers then queue behind no multicast. MMC_NEVER_NS unless the policy
 * gathers and most chains have ended.
 */
uint64_t mmc_loss_ending_ns(const struct mmc_loss *loss);

/* Returns when to call mmc_loss_ask() and mmc_silence_ask() again. */
uint64_t mmc_loss_deadline(const struct mmc_loss *loss);

#endif
