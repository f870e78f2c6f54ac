/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/replay.h"

#include "support/bits.h"

#define WORD_BITS 64

/* Clears the words that come into the window when `number` becomes the greatest. */
static void advance(struct mmc_replay *replay, uint64_t number)
{
	uint64_t word = replay->greatest / WORD_BITS;
	uint64_t nnew = mmc_min_u64(number / WORD_BITS - word, replay->nwords);

	for (uint64_t i = 1; i <= nnew; i++)
		replay->words[(word + i) & (replay->nwords - 1)] = 0;
	replay->greatest = number;
}

bool mmc_replay_accept(struct mmc_replay *replay, uint64_t number)
{
	uint64_t bit = UINT64_C(1) << number % WORD_BITS;
	uint64_t word = number / WORD_BITS;
	uint64_t *at = &replay->words[word & (replay->nwords - 1)];

	if (number > replay->greatest)
		advance(replay, number);
	else if (replay->greatest / WORD_BITS - word >= replay->nwords)
		return false;
	if (number == 0 || (*at & bit) != 0)
		return false;
	*at |= bit;
	return true;
}
