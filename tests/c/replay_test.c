/* SPDX-License-Identifier: BSD-3-Clause */
/* The window of numbers accepts each number once, as a model without a bitmap does. */
#include "check.h"
#include "drivers/protect/replay.h"
#include "support/prng.h"

#define NWORDS 4
#define WINDOW_BITS (NWORDS * 64)
#define NUMBERS 8192

static uint64_t words[NWORDS];
static struct mmc_replay replay;

static void begin(void)
{
	memset(words, 0, sizeof(words));
	mmc_replay_init(&replay, words, NWORDS);
}

/* What RFC 6479 asks for, with a flag for every number that there is. */
struct model {
	bool accepted[NUMBERS];
	uint64_t greatest;
};

static bool model_accept(struct model *model, uint64_t number)
{
	if (number == 0 || model->accepted[number] ||
	    (number < model->greatest &&
	     model->greatest / 64 - number / 64 >= NWORDS))
		return false;
	model->accepted[number] = true;
	if (number > model->greatest)
		model->greatest = number;
	return true;
}

static void numbers_are_accepted_once(void)
{
	begin();
	for (uint64_t number = 1; number < 1000; number++) {
		CHECK(mmc_replay_accept(&replay, number));
		CHECK(!mmc_replay_accept(&replay, number));
	}
	CHECK(!mmc_replay_accept(&replay, 0));
}

/* The edges: the oldest number of the oldest word, and the one before it. */
static void the_window_ends_with_a_word(void)
{
	const uint64_t greatest = 10 * WINDOW_BITS + 17;
	const uint64_t oldest = (greatest / 64 - NWORDS + 1) * 64;

	begin();
	CHECK(mmc_replay_accept(&replay, greatest));
	CHECK(!mmc_replay_accept(&replay, greatest));
	CHECK(mmc_replay_accept(&replay, oldest));
	CHECK(!mmc_replay_accept(&replay, oldest));
	CHECK(!mmc_replay_accept(&replay, oldest - 1));
	CHECK(mmc_replay_accept(&replay, greatest - 1));
	/* The next word displaces the oldest. */
	CHECK(mmc_replay_accept(&replay, (greatest / 64 + 1) * 64));
	CHECK(!mmc_replay_accept(&replay, oldest + 1));
	CHECK(mmc_replay_accept(&replay, oldest + 64));
}

/* A jump over more numbers than the window holds leaves nothing of the old ones. */
static void a_jump_clears_the_window(void)
{
	begin();
	for (uint64_t number = 1; number <= WINDOW_BITS; number++)
		mmc_replay_accept(&replay, number);
	CHECK(mmc_replay_accept(&replay, UINT64_C(1) << 40));
	for (unsigned back = 1; back < WINDOW_BITS - 64; back++)
		CHECK(mmc_replay_accept(&replay, (UINT64_C(1) << 40) - back));
	CHECK(mmc_replay_accept(&replay, UINT64_MAX));
	CHECK(!mmc_replay_accept(&replay, 1));
}

static void random_orders_agree_with_the_model(void)
{
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned round = 0; round < 200; round++) {
		static struct model model;
		uint64_t spread = 1 + mmc_prng_below(&prng, 2 * WINDOW_BITS);
		uint64_t base = 0;

		memset(&model, 0, sizeof(model));
		begin();
		while (base + spread < NUMBERS) {
			uint64_t number = base + mmc_prng_below(&prng, spread);

			if (!CHECK_EQ(mmc_replay_accept(&replay, number),
				      model_accept(&model, number)))
				return;
			base += mmc_prng_below(&prng, 3);
		}
	}
}

CHECK_MAIN(CHECK_TEST(numbers_are_accepted_once),
	   CHECK_TEST(the_window_ends_with_a_word),
	   CHECK_TEST(a_jump_clears_the_window),
	   CHECK_TEST(random_orders_agree_with_the_model))
