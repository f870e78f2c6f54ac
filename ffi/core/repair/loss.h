/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects the chunks that multicast has lost, and decides when to ask for them. Lost
 * are the gaps in a sender's sequence that are older than an allowance for reordering,
 * and the chunks that a silent sender reports as sent. The record of a sender that goes
 * on sending is no proof, since control overtakes data in receive buffers. While
 * others' chunks arrive, a silent sender may be waiting for the link: it is asked
 * rarely.
 *
 * A chunk is asked for after a random delay in which others' requests for it may be
 * heard of, and again only after one to two retry intervals, which double while
 * nothing comes.
 */
#ifndef MMC_CORE_REPAIR_LOSS_H
#define MMC_CORE_REPAIR_LOSS_H

#include "core/repair/chain.h"
#include "core/repair/strategy.h"
#include "support/prng.h"

/*
 * The first direct NAKs are for so few chunks, since the repairs of all ranks may share
 * a queue.
 */
#define MMC_LOSS_DIRECT_CHUNKS 32

struct mmc_loss {
	uint32_t rank;
	struct mmc_schedule schedule;
	const struct mmc_repair_strategy *strategy;
	struct mmc_chain *chains;
	uint32_t nopen;			/* chains of which more is to come */
	struct mmc_sequence *sequences; /* of all chains */
	struct mmc_bitmap asked;	/* in this retry interval */
	struct mmc_bitmap before;	/* in the one before */
	struct mmc_bitmap lost;		/* ever */
	struct mmc_prng prng;
	uint64_t begun_ns; /* when chunks were expected from */
	uint64_t busy_ns;  /* for which a silent sender waits for a busy link */
	uint64_t heard_ns; /* when a chunk came by multicast last */
	uint64_t quiet_ns; /* a sender silent for so long is asked */
	uint64_t trip_ns;  /* a round trip, for which answers are under way */
	uint64_t allowance_ns;	/* for reordering */
	uint64_t jitter_max_ns; /* random delay of a request, at most */
	uint64_t gap_ns;     /* when what is missing below `gap_end` is late */
	uint64_t overdue_ns; /* when it may be lost below `overdue_end` */
	uint32_t overdue_heard; /* chunks heard when that was noted */
	uint64_t ask_ns;	/* when to look for what is lost */
	uint64_t silence_ns;	/* when to look for silent senders */
	struct mmc_backoff retry;
	uint64_t retried_ns;	/* when the present retry interval began */
	uint64_t asked_ns;	/* when anything was asked for last */
	uint32_t retried_heard; /* chunks heard by then */
	uint64_t
		answer_ns; /* that answers have taken, smoothed; 0: none came */
	uint64_t timed_ns; /* when the request that is timed was made */
	uint32_t timed_chunk;	/* its last chunk; UINT32_MAX: none is */
	uint32_t nasked;	/* retry intervals since nothing was missing */
	uint32_t budget_chunks; /* that may be asked for and not yet here */
	uint32_t
		direct_chunks; /* of these by unicast: less when many are lost */
	uint32_t waited_chunks; /* that are */
	uint32_t sweep_chunk;	/* where looking goes on; nchunks: it is over */
	uint32_t silence_chain; /* likewise, nchains */
	uint32_t silence_place; /* in that chain */
	bool reached;  /* multicast chunks arrived in the last retry interval */
	bool missing;  /* found in this sweep */
	bool held;     /* the budget has ended it */
	bool hastened; /* since the operation is ending */
	bool passed;   /* a chain's `npassed` has grown by what is lost */
};

/*
 * The longest random delay of a request now: it need not be long for an operation that
 * has not taken long either.
 */
static inline uint64_t mmc_loss_jitter_ns(const struct mmc_loss *loss,
					  uint64_t now_ns)
{
	return mmc_min_u64(loss->jitter_max_ns,
			   mmc_max_u64(loss->jitter_max_ns / 4,
				       (now_ns - loss->begun_ns) / 64));
}

/* The first retry interval. */
static inline uint64_t mmc_loss_retry_ns(const struct mmc_loss *loss,
					 uint64_t now_ns)
{
	return loss->trip_ns + mmc_loss_jitter_ns(loss, now_ns);
}

/* The memory for `nchunks` chunks of `nsenders` in at most `nchains` chains, in bytes. */
size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nsenders, uint32_t nchains);

/* Begins in `memory`, mmc_loss_bytes() long; nothing is expected yet. */
void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory, uint32_t rank,
		   uint32_t nchunks, uint32_t nchains, uint64_t seed,
		   const struct mmc_repair_strategy *strategy);

/*
 * The bulk may flow: chunks are expected from now on, as planned by `schedule`.
 * Those in `claimed` have come already. `srtt_ns` is the largest round trip,
 * `late_ns` how late chunks may be that were asked for too soon before,
 * `batch_ns` the time from one batch of a chain to the next. No more than
 * `budget_chunks` are asked for and waited for at a time, and a quarter of these while
 * more is to come by multicast.
 */
void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed, uint64_t srtt_ns,
		    uint64_t late_ns, uint64_t batch_ns, uint32_t budget_chunks,
		    uint64_t now_ns);

/*
 * The sequence of the sender with `block`, which has begun; NULL if all that is
 * missing of it is lost already.
 */
struct mmc_sequence *mmc_loss_follow(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const struct mmc_block *block,
				     uint64_t now_ns);

/* Notes the late chunks: they count as lost once a window of chunks follows them. */
void mmc_loss_mark_late(struct mmc_loss *loss, uint64_t now_ns);

/*
 * Counts the noted gaps that are still open after the allowance as late, and late chunks
 * as lost once a window of chunks follows them or the link is idle.
 */
void mmc_loss_lose_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint64_t now_ns);

/* Something below a chunk just heard is missing: it will be asked for. */
__attribute__((cold)) void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns);

/*
 * The `place`th chunk of a sender came for the first time, by multicast; `sequence`
 * is NULL if the sender has been passed.
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

/* All that a sender has to send is here: the next one is expected. */
__attribute__((cold)) void mmc_loss_pass(struct mmc_loss *loss, uint32_t chain,
					 uint64_t now_ns);

/* Takes note that a chunk that may have been asked for is here. */
__attribute__((cold)) void mmc_loss_came(struct mmc_loss *loss, uint32_t chunk,
					 uint64_t now_ns);

/*
 * The `place`th chunk of the sender of `sequence`, NULL if that is not followed, is
 * claimed, in whatever way it came.
 */
static inline void mmc_loss_mend(struct mmc_loss *loss, uint32_t chain,
				 struct mmc_sequence *sequence, uint32_t place,
				 uint32_t chunk, uint64_t now_ns)
{
	if (loss->waited_chunks > 0)
		mmc_loss_came(loss, chunk, now_ns);
	if (sequence == NULL)
		return;
	loss->chains[chain].npassed += place >= sequence->late_end;
	if (--sequence->nleft == 0)
		mmc_loss_pass(loss, chain, now_ns);
}

/* This rank, with `block`, has sent the chunks of `run`, counted in the block. */
void mmc_loss_sent(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		   const struct mmc_block *block, struct mmc_run run,
		   uint64_t now_ns);

/* Nothing will be multicast: all that is missing is to be asked for. */
void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_strategy *strategy,
			     uint64_t now_ns);

/*
 * Takes note that a repair has arrived. Further repairs may be on their way behind it,
 * so the next retry waits until they cease, for MMC_BACKOFF_MAX_NS at most.
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
 * A repairer says that it will multicast `run`, which lies within the operation,
 * so it need not be asked. Returns how many of its chunks turn out lost here.
 */
uint32_t mmc_loss_suppress(struct mmc_loss *loss,
			   const struct mmc_bitmap *claimed, struct mmc_run run,
			   uint64_t now_ns);

/*
 * Whether repairers are to be asked for answers by unicast. Where multicast has only been
 * out for a time, what many still lack must go to all, so every other request leaves
 * the choice to the repairer.
 */
bool mmc_loss_asks_directly(const struct mmc_loss *loss);

/*
 * Whether a repairer is to be asked now for chunks not in `claimed`. If so writes
 * whom, and up to MMC_RUNS_MAX runs to `runs`, and adds the number of chunks
 * asked for the first time to `*nlost`. Call until it returns false.
 */
bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, uint32_t *repairer, struct mmc_run *runs,
		  uint32_t *nruns, uint32_t *nlost);

/* The number of chunks that came by multicast. */
uint32_t mmc_loss_heard(const struct mmc_loss *loss);

/*
 * A sender in a chain from which no chunk came by multicast although others send
 * enough there to tell; MMC_PEER_ALL if every chain was heard.
 */
uint32_t mmc_loss_unheard(const struct mmc_loss *loss);

/*
 * When the link has been idle for as long as a silent sender is waited for and most
 * chains are over, so that owners' answers queue behind nothing that is multicast;
 * MMC_NEVER_NS before.
 */
uint64_t mmc_loss_ending_ns(const struct mmc_loss *loss);

/* When to call mmc_loss_ask() and mmc_silence_ask() again. */
uint64_t mmc_loss_deadline(const struct mmc_loss *loss);

#endif
