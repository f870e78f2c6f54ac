/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when this rank's turn begins, and how far it may run ahead of the slowest
 * receiver. A turn begins once the predecessor's last chunks arrive, or its word that
 * all are sent. A predecessor that has been silent is asked, and is overtaken if it
 * does not answer: both ranks then share the chain's window.
 *
 * The result does not depend on either decision being right: chunks that are lost
 * because a window was exceeded are repaired. So a rank that has waited for too long
 * goes on, and no straggler and no lost report stalls the others.
 */
#ifndef MMC_CORE_FLOW_TURN_H
#define MMC_CORE_FLOW_TURN_H

#include "core/flow/path.h"
#include "core/flow/watermark.h"
#include "core/repair/loss.h"

struct mmc_turn {
	struct mmc_schedule schedule;
	uint32_t chain;	  /* this rank's chain */
	uint32_t turn;	  /* this rank's turn in its chain */
	uint32_t start;	  /* the position of its first chunk */
	uint32_t nchunks; /* the chunks of its block */
	/* The next chunk to send, counted from the first of its block. */
	uint32_t next;
	/* Where to pause, counted likewise: parity goes out first. */
	uint32_t stop;
	/* The chunks of the last batch beyond the window; `stop` may have cut it short. */
	uint32_t last_batch_chunks;
	/* The predecessor in the chain, or MMC_PEER_NONE. */
	uint32_t predecessor;
	uint64_t flow_ns;     /* when the operation's flow began */
	bool began;	      /* this rank's turn has begun */
	bool asked;	      /* a question to the predecessor is open */
	uint64_t asked_ns;    /* when the predecessor was last asked */
	uint64_t answered_ns; /* when the predecessor's last message arrived */
	/* How long it may be silent before it is asked. */
	uint64_t patience_ns;
	/* When to ask the predecessor; once it was asked, when to begin. */
	uint64_t begin_ns;
	/* The position that all receivers had reached at the last call. */
	uint32_t drained;
	uint64_t drained_ns; /* when `drained` last changed */
	uint64_t batch_ns; /* when the last batch beyond the window was sent */
	uint64_t lag_ns;   /* when to go on although the window is full */
	bool open_loop;	   /* the turn goes on although the window is full */
	/* Chunks heard from other chains when set_pace() last ran. */
	uint32_t nheard;
	/* Chunks heard from this chain when set_pace() last ran. */
	uint32_t nchain_heard;
	struct mmc_backoff probe; /* when to say how much has been sent */
};

/* Initializes the turn of `rank` when all have entered: nothing is sent yet. */
void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule, uint64_t now_ns);

/* Returns whether mmc_turn_next() has handed out the whole block. */
static inline bool mmc_turn_ended(const struct mmc_turn *turn)
{
	return turn->next == turn->nchunks;
}

/*
 * Returns whether this turn may begin or go on because a chunk of `chain` has arrived.
 * Otherwise only the end of a sender, a message or the deadline can let it.
 */
static inline bool mmc_turn_listens(const struct mmc_turn *turn,
				    const struct mmc_loss *loss, uint32_t chain)
{
	const struct mmc_chain *at = &loss->chains[chain];

	if (mmc_turn_ended(turn))
		return false;
	if (turn->began)
		return turn->open_loop;
	return chain == turn->chain &&
	       (turn->turn >= at->nfollowed ||
		at->seen + turn->schedule.batch_chunks / 2 >= turn->start);
}

/*
 * Records that a message of `source` arrived: a predecessor that answers is waited for.
 */
static inline void mmc_turn_hear(struct mmc_turn *turn, uint32_t source,
				 uint64_t now_ns)
{
	if (source != turn->predecessor)
		return;
	turn->answered_ns = now_ns;
}

/*
 * Returns whether to ask the silent predecessor for its record now; counts it as asked.
 */
bool mmc_turn_take_question(struct mmc_turn *turn, const struct mmc_loss *loss,
			    const struct mmc_watermark *watermark,
			    const struct mmc_path *path, uint64_t now_ns);

/*
 * Returns whether chunks are to be sent now. If so, writes the next run of them,
 * counted from the first chunk of this rank's block, and counts it as sent.
 */
bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_loss *loss,
		   const struct mmc_watermark *watermark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run);

/*
 * Returns whether to tell all ranks now how much this one has sent. Receivers that lack
 * the end of a full window do not notice the loss otherwise, and report nothing that
 * would free the window. Once true, it is true again ever more rarely.
 */
bool mmc_turn_take_probe(struct mmc_turn *turn, uint64_t now_ns);

/*
 * Returns when to call mmc_turn_take_question(), mmc_turn_next() and
 * mmc_turn_take_probe() again although nothing arrives.
 */
uint64_t mmc_turn_deadline(const struct mmc_turn *turn);

#endif
