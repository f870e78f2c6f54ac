/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that a rank owes to the questions of others: at most one to each
 * rank, given in the order in which the ranks asked, so that nobody starves however
 * many others ask. A rank that asks about another epoch before it has had its
 * answer is not heard, and asks again.
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
	struct mmc_answer *ring; /* [nranks] */
	uint32_t *places; /* [nranks] in the ring; or that nothing is owed */
	uint32_t nranks;
	uint32_t first;
	uint32_t count;
};

/* The memory for a stream of `nranks` ranks, in bytes. */
size_t mmc_answers_bytes(uint32_t nranks);

/* Owes nobody anything yet; `memory` is mmc_answers_bytes() long. */
void mmc_answers_init(struct mmc_answers *answers, uint8_t *memory,
		      uint32_t nranks);

/* Owes `answer` to its peer, which is below nranks, unless one is owed already. */
void mmc_answers_owe(struct mmc_answers *answers, struct mmc_answer answer);

/* Takes the answer that has been owed for longest; false if there is none. */
bool mmc_answers_next(struct mmc_answers *answers, struct mmc_answer *answer);

#endif
