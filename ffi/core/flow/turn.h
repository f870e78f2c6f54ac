/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends this rank's block: when its turn begins, and how far it may run ahead of the
 * slowest receiver. Neither carries correctness. A turn begins on the predecessor's
 * last chunks, or on its word that all are sent. A predecessor that has been silent is
 * asked, and overtaken if it does not answer: both then share the chain's window. A
 * window that is not respected loses datagrams, which are repaired. So a rank that
 * waits for too long goes on: no straggler and no lost report stalls the others.
 */
#ifndef MMC_CORE_FLOW_TURN_H
#define MMC_CORE_FLOW_TURN_H

#include "core/flow/path.h"
#include "core/flow/watermark.h"
#include "core/repair/loss.h"

struct mmc_turn {
	struct mmc_schedule schedule;
	uint32_t chain; /* this rank's chain */
	uint32_t turn;	/* this rank's turn in its chain */
	uint32_t start; /* the position of its first chunk */
	uint32_t nchunks;
	/* The index in this rank's block of the next chunk to send. */
	uint32_t next;
	/* The predecessor in the chain, or MMC_PEER_ALL. */
	uint32_t predecessor;
	uint64_t flow_ns; /* when the first turns began */
	bool began;
	bool asked;	      /* a question to the predecessor is open */
	uint64_t asked_ns;    /* when the predecessor was last asked */
	uint64_t answered_ns; /* when the predecessor's last message arrived */
	uint64_t patience_ns; /* how long its silence is borne */
	/* When to ask the predecessor; once it was asked, when to begin. */
	uint64_t begin_ns;
	uint32_t drained; /* the position of all receivers at the last look */
	uint64_t drained_ns; /* when `drained` last changed */
	uint64_t batch_ns; /* when the last batch beyond the window was sent */
	uint64_t lag_ns;   /* when to go on although the window is full */
	bool open_loop;	   /* the turn has gone on with a full window */
	/* Chunks heard from other chains when set_pace() last ran. */
	uint32_t nheard;
	/* Chunks heard from this chain when set_pace() last ran. */
	uint32_t nchain_heard;
	struct mmc_backoff probe; /* when to say how much has been sent */
};

/* Initializes the turn when the entry barrier has passed: nothing is sent yet. */
void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule, uint64_t now_ns);

/* Returns whether the whole block has been handed out. */
static inline bool mmc_turn_over(const struct mmc_turn *turn)
{
	return turn->next == turn->nchunks;
}

/* Records a message of `source`: a predecessor that answers is not overtaken. */
static inline void mmc_turn_hear(struct mmc_turn *turn, uint32_t source,
				 uint64_t now_ns)
{
	if (source != turn->predecessor)
		return;
	turn->answered_ns = now_ns;
}

/* Returns whether to ask the silent predecessor for its record now. */
bool mmc_turn_ask(struct mmc_turn *turn, const struct mmc_loss *loss,
		  const struct mmc_watermark *watermark,
		  const struct mmc_path *path, uint64_t now_ns);

/*
 * Returns whether chunks may be sent now. If so, writes the next run of this rank's
 * block, as indices in the block; the run counts as sent.
 */
bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_loss *loss,
		   const struct mmc_watermark *watermark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run);

/*
 * Returns whether to say now how much has been sent: receivers may wait for lost chunks
 * at the end of a full window, and report nothing.
 */
bool mmc_turn_probe(struct mmc_turn *turn, uint64_t now_ns);

/*
 * Returns when to call mmc_turn_ask(), mmc_turn_next() and mmc_turn_probe() again
 * although nothing arrives.
 */
uint64_t mmc_turn_deadline(const struct mmc_turn *turn);

#endif
