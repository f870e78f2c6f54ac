/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that a rank owes to the questions of others: at most one to each rank,
 * given in the order in which the ranks asked, so that no rank starves however many
 * others ask. A rank that asks about another epoch before it has its answer is ignored,
 * and asks again.
 */
#ifndef MMC_CORE_BARRIER_ANSWERS_H
#define MMC_CORE_BARRIER_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mmc_answer {
	uint32_t peer;
	uint32_t epoch;
	uint32_t echo_us; /* the question's stamp, by the asker's clock */
};

struct mmc_answers {
	struct mmc_answer *ring; /* [nranks] answers owed */
	/* [nranks] place in `ring`; UINT32_MAX: none is owed */
	uint32_t *places;
	uint32_t nranks;
	uint32_t first;
	uint32_t count;
};

/* Returns the bytes of memory for a stream of `nranks` ranks. */
size_t mmc_answers_bytes(uint32_t nranks);

/*
 * Initializes `answers` in `memory`, mmc_answers_bytes() long; no answer is owed yet.
 */
void mmc_answers_init(struct mmc_answers *answers, uint8_t *memory,
		      uint32_t nranks);

/*
 * Owes `answer` to its peer, a rank below nranks, unless one is owed already for
 * another epoch; for the same epoch the newer stamp counts.
 */
void mmc_answers_owe(struct mmc_answers *answers, struct mmc_answer answer);

/* Takes the answer that has been owed for longest; returns false if there is none. */
bool mmc_answers_next(struct mmc_answers *answers, struct mmc_answer *answer);

#endif
