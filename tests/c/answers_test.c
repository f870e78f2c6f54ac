/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream answers questions in their order, one at a time to each rank. */
#include <stdlib.h>

#include "check.h"
#include "core/barrier/answers.h"
#include "support/memory.h"
#include "support/prng.h"

#define NRANKS 300

static struct mmc_answers answers;
static void *memory;

static void open_answers(uint32_t nranks)
{
	memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_answers_bytes(nranks));
	mmc_answers_init(&answers, memory, nranks);
}

static void owe(uint32_t peer, uint32_t epoch, uint32_t echo_us)
{
	const struct mmc_answer answer = {
		.peer = peer,
		.epoch = epoch,
		.echo_us = echo_us,
	};

	mmc_answers_owe(&answers, answer);
}

static void check_next(uint32_t peer, uint32_t epoch, uint32_t echo_us)
{
	struct mmc_answer answer;

	if (!CHECK(mmc_answers_next(&answers, &answer)))
		return;
	CHECK_EQ(answer.peer, peer);
	CHECK_EQ(answer.epoch, epoch);
	CHECK_EQ(answer.echo_us, echo_us);
}

static void first_come_first_served(void)
{
	struct mmc_answer answer;

	open_answers(NRANKS);
	for (uint32_t r = NRANKS; r > 0; r--)
		owe(r - 1, r, 7 * r);
	for (uint32_t r = NRANKS; r > 0; r--)
		check_next(r - 1, r, 7 * r);
	CHECK(!mmc_answers_next(&answers, &answer));
	free(memory);
}

/*
 * A rank is owed one answer at a time. The answer echoes its last question about the
 * same epoch, so that round trips are not measured too long.
 */
static void one_answer_each(void)
{
	struct mmc_answer answer;

	open_answers(3);
	owe(2, 5, 10);
	owe(1, 5, 11);
	owe(2, 6, 12);
	owe(2, 5, 13);
	check_next(2, 5, 13);
	owe(2, 6, 14);
	check_next(1, 5, 11);
	check_next(2, 6, 14);
	CHECK(!mmc_answers_next(&answers, &answer));
	free(memory);
}

/* A rank that asks is answered after at most one answer to each other rank. */
static void nobody_starves(void)
{
	static uint32_t waits[NRANKS];
	struct mmc_prng prng = { .state = 5 };
	struct mmc_answer answer;

	open_answers(NRANKS);
	for (int i = 0; i < 100000; i++) {
		for (int n = 0; n < 3; n++) {
			uint32_t peer = (uint32_t)mmc_prng_below(&prng, NRANKS);

			owe(peer, 1, 1);
			if (waits[peer] == 0)
				waits[peer] = 1;
		}
		if (!CHECK(mmc_answers_next(&answers, &answer)))
			break;
		CHECK(waits[answer.peer] > 0);
		waits[answer.peer] = 0;
		for (uint32_t r = 0; r < NRANKS; r++)
			if (waits[r] > 0)
				CHECK(waits[r]++ <= NRANKS);
	}
	free(memory);
}

CHECK_MAIN(CHECK_TEST(first_come_first_served), CHECK_TEST(one_answer_each),
	   CHECK_TEST(nobody_starves))
