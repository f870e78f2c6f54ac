/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending the own block: when this rank's turn comes, and how far it may run
 * ahead of the slowest receiver. Neither carries correctness. A turn that
 * begins early shares the link, and what its predecessor has not sent yet is
 * taken for lost and sent twice; a window that is not respected loses datagrams,
 * which are repaired. So whoever waits for too long goes on: no straggler and no
 * lost report stalls the others.
 */
#ifndef MMC_CORE_TURN_H
#define MMC_CORE_TURN_H

#include "core/loss.h"
#include "core/path.h"
#include "core/watermark.h"

struct mmc_turn {
	struct mmc_schedule schedule;
	uint32_t chain; /* of this rank */
	uint32_t start; /* the position of its first chunk */
	uint32_t nchunks;
	uint32_t next; /* index in the own block of the next to send */
	bool began;
	uint64_t begin_ns; /* when to begin although no sign has come */
	uint64_t lag_ns;   /* when to go on although the window is full */
	struct mmc_backoff probe; /* when to say how much was sent till then */
};

/* Begins when the gate has passed: nothing is sent yet. */
void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule);

/* Whether the whole block has been handed out. */
static inline bool mmc_turn_over(const struct mmc_turn *turn)
{
	return turn->next == turn->nchunks;
}

/*
 * Whether chunks may be sent now. If so writes the next run of the own block,
 * as indices in the block; it counts as sent. `chain` is this rank's own.
 */
bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_chain *chain,
		   const struct mmc_watermark *mark,
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
