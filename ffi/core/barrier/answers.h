/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that this rank owes to the questions of others: at most one to each rank,
 * given in the order in which the ranks asked, so that no rank starves however many
 * others ask. As long as a rank is owed an answer, its questions about other epochs are
 * ignored; it will ask again.
 */
#ifndef MMC_CORE_BARRIER_ANSWERS_H
#define MMC_CORE_BARRIER_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mmc_answer {
	uint32_t peer;	  /* the rank that asked */
	uint32_t epoch;	  /* what it asked about */
	uint32_t echo_us; /* its question's stamp, to be returned */
	/* Of the blocks that the answer may carry, the first byte that it asked for. */
	uint32_t first;
};

struct mmc_answers {
	struct mmc_answer *ring; /* [nranks] the answers owed, as a queue */
	/* [nranks] For each rank the place of its answer; UINT32_MAX: none is owed. */
	uint32_t *places;
	uint32_t nranks;
	/* The place of the answer that has been owed for longest. */
	uint32_t first;
	uint32_t count; /* how many answers are owed */
};

/* Returns the bytes of memory for a stream of `nranks` ranks. */
size_t mmc_answers_bytes(uint32_t nranks);

/*
 * Initializes `answers` in `memory`, mmc_answers_bytes() long; no answer is owed yet.
 */
void mmc_answers_init(struct mmc_answers *answers, uint8_t *memory,
		      uint32_t nranks);

/*
 * Records that `answer` is owed to its peer, a rank below nranks. If an answer about
 * the same epoch is owed to it already, the newer one takes its place; if one about
 * another epoch is, nothing changes.
 */
void mmc_answers_owe(struct mmc_answers *answers, struct mmc_answer answer);

/*
 * Takes the answer that has been owed for longest from the queue and writes it to
 * `answer`. Returns false if no answer is owed.
 */
bool mmc_answers_next(struct mmc_answers *answers, struct mmc_answer *answer);

#endif
