/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/barrier/answers.h"

#include "support/memory.h"

/* The place of a rank to which no answer is owed. */
#define NONE UINT32_MAX

size_t mmc_answers_bytes(uint32_t nranks)
{
	return mmc_part_bytes(nranks * sizeof(struct mmc_answer)) +
	       mmc_part_bytes(nranks * sizeof(uint32_t));
}

void mmc_answers_init(struct mmc_answers *answers, uint8_t *memory,
		      uint32_t nranks)
{
	answers->ring =
		mmc_part_take(&memory, nranks * sizeof(struct mmc_answer));
	answers->places = mmc_part_take(&memory, nranks * sizeof(uint32_t));
	answers->nranks = nranks;
	answers->first = 0;
	answers->count = 0;
	for (uint32_t r = 0; r < nranks; r++)
		answers->places[r] = NONE;
}

void mmc_answers_owe(struct mmc_answers *answers, struct mmc_answer answer)
{
	uint32_t *place = &answers->places[answer.peer];

	if (*place == NONE) {
		*place = (answers->first + answers->count) % answers->nranks;
		answers->count++;
		answers->ring[*place] = answer;
	} else if (answers->ring[*place].epoch == answer.epoch) {
		answers->ring[*place] = answer;
	}
}

bool mmc_answers_next(struct mmc_answers *answers, struct mmc_answer *answer)
{
	if (answers->count == 0)
		return false;
	*answer = answers->ring[answers->first];
	answers->places[answer->peer] = NONE;
	answers->first = (answers->first + 1) % answers->nranks;
	answers->count--;
	return true;
}
