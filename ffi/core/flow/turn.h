/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending the own block: when this rank's turn comes, and how far it may run
 * ahead of the slowest receiver. Neither carries correctness. A turn begins on the
 * predecessor's last chunks, or its word that all are sent. A predecessor that has
 * been silent is asked, and overtaken if it does not answer: both then share the
 * chain's window. A window that is not respected loses datagrams, which are
 * repaired. So whoever waits for too long goes on: no straggler and no lost report
 * stalls the others.
 */
#ifndef MMC_CORE_FLOW_TURN_H
#define MMC_CORE_FLOW_TURN_H

#include "core/flow/path.h"
#include "core/flow/watermark.h"
#include "core/repair/loss.h"

struct mmc_turn {
	struct mmc_schedule schedule;
	uint32_t chain; /* of this rank */
	uint32_t turn;	/* in its chain */
	uint32_t start; /* the position of its first chunk */
	uint32_t nchunks;
	uint32_t next;	      /* index in the own block of the next to send */
	uint32_t predecessor; /* in the chain, or MMC_PEER_ALL */
	uint64_t flow_ns;     /* when the first turns began */
	bool began;
	bool asked;	       /* the predecessor, and it has not answered */
	uint64_t asked_ns;     /* when it was asked last */
	uint64_t answered_ns;  /* when a message of it came last */
	uint64_t patience_ns;  /* for its silence */
	uint64_t begin_ns;     /* when to ask it; if it was asked, to begin */
	uint32_t drained;      /* by all receivers, when looked at last */
	uint64_t drained_ns;   /* when that was new */
	uint64_t batch_ns;     /* when it last sent beyond its window */
	uint64_t lag_ns;       /* when to go on although the window is full */
	bool open_loop;	       /* it has gone on in spite of that */
	uint32_t nheard;       /* chunks of other chains, when it did last */
	uint32_t nchain_heard; /* likewise of its own, of others */
	struct mmc_backoff probe; /* when to say how much was sent till then */
};

/* Begins when the barrier has passed: nothing is sent yet. */
void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule, uint64_t now_ns);

/* Whether the whole block has been handed out. */
static inline bool mmc_turn_over(const struct mmc_turn *turn)
{
	return turn->next == turn->nchunks;
}

/* Takes note that a message of `source` has come: who answers is not overtaken. */
static inline void mmc_turn_hear(struct mmc_turn *turn, uint32_t source,
				 uint64_t now_ns)
{
	if (source != turn->predecessor)
		return;
	turn->answered_ns = now_ns;
}

/* Whether to ask the silent predecessor now for its record. */
bool mmc_turn_ask(struct mmc_turn *turn, const struct mmc_loss *loss,
		  const struct mmc_watermark *watermark,
		  const struct mmc_path *path, uint64_t now_ns);

/*
 * Whether chunks may be sent now. If so writes the next run of the own block,
 * as indices in the block; it counts as sent.
 */
bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_loss *loss,
		   const struct mmc_watermark *watermark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run);

/*
 * Whether to say now how much has been sent: receivers may wait for the last
 * chunks of a full window, which are lost, and report nothing.
 */
bool mmc_turn_probe(struct mmc_turn *turn, uint64_t now_ns);

/* When to call again although nothing comes. */
uint64_t mmc_turn_deadline(const struct mmc_turn *turn);

#endif
