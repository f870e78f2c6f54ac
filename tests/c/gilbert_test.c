/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses have the share and the periods that were asked for, and are those of a plain chain. */
#include "check.h"
#include "support/gilbert.h"

#define TRIALS 1000000u
#define SIGMAS 5

static const struct {
	double loss;
	unsigned period;
} cases[] = {
	{ 0.00001, 1 }, { 0.001, 1 }, { 0.3, 1 },  { 1, 1 },
	{ 0, 1 },	{ 0.001, 2 }, { 0.01, 4 }, { 0.1, 16 },
	{ 0.5, 50 },	{ 0.2, 2 },   { 0.9, 9 },  { 0, 5 },
};

static uint64_t parts(double probability)
{
	return (uint64_t)(probability * (double)MMC_GILBERT_ONE);
}

struct counts {
	unsigned lost;
	unsigned periods;
};

/* Counts losses and their periods, while a slow model draws the same numbers. */
static struct counts count(double loss, unsigned period)
{
	struct mmc_gilbert model = mmc_gilbert_make(parts(loss), period);
	struct mmc_prng prng = { check_seed() };
	struct mmc_prng same = prng;
	struct counts counts = { 0, 0 };
	double chance = loss;
	bool before = false;

	for (unsigned i = 0; i < TRIALS; i++) {
		double drawn = (double)(mmc_prng_next(&same) >> 32) /
			       (double)MMC_GILBERT_ONE;
		bool lost = mmc_gilbert_loses(&model, &prng);

		/* Numbers that lie on the edge may be rounded either way. */
		if (drawn < chance - 1e-8 || drawn > chance + 1e-8)
			if (!CHECK_EQ(lost, drawn < chance))
				break;
		counts.lost += lost;
		counts.periods += lost && !before;
		before = lost;
		if (period > 1)
			chance = lost ? 1 - 1.0 / period
				      : loss / (1 - loss) / period;
	}
	return counts;
}

/* Returns whether a count is within SIGMAS deviations of its mean. */
static bool fits(double found, double mean, double variance)
{
	return (found - mean) * (found - mean) <=
	       SIGMAS * SIGMAS * variance + 1;
}

static void shares_and_periods(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double loss = cases[i].loss;
		double period = cases[i].period;
		struct counts counts = count(loss, cases[i].period);
		/* How strongly a datagram's fate depends on the one before. */
		double again = period > 1 ? 1 - 1 / period : loss;
		double first = period > 1 ? loss / (1 - loss) / period : loss;
		double memory = again - first;
		double mean = TRIALS * loss;

		CHECK(fits(counts.lost, mean,
			   mean * (1 - loss) * (1 + memory) / (1 - memory)));
		/* A loss ends its period with a probability of 1 - again. */
		CHECK(fits(counts.periods, counts.lost * (1 - again),
			   counts.lost * again * (1 - again)));
	}
}

/* As a model in fractions gives them, too. */
static void a_seed_gives_exact_counts(void)
{
	struct mmc_gilbert model = mmc_gilbert_make(parts(0.01), 8);
	struct mmc_prng prng = { 7 };
	unsigned lost = 0, periods = 0;
	bool before = false;

	for (unsigned i = 0; i < TRIALS; i++) {
		bool is_lost = mmc_gilbert_loses(&model, &prng);

		lost += is_lost;
		periods += is_lost && !before;
		before = is_lost;
	}
	CHECK_EQ(lost, 9978);
	CHECK_EQ(periods, 1251);
}

static void limits(void)
{
	CHECK(mmc_gilbert_is_valid(MMC_GILBERT_ONE, 0));
	CHECK(mmc_gilbert_is_valid(MMC_GILBERT_ONE, 1));
	CHECK(!mmc_gilbert_is_valid(MMC_GILBERT_ONE + 1, 1));
	CHECK(mmc_gilbert_is_valid(MMC_GILBERT_ONE / 4 * 3, 3));
	CHECK(!mmc_gilbert_is_valid(MMC_GILBERT_ONE / 4 * 3 + 1, 3));
	CHECK(mmc_gilbert_is_valid(0, MMC_GILBERT_PERIOD_MAX));
	CHECK(!mmc_gilbert_is_valid(0, MMC_GILBERT_PERIOD_MAX + 1));
}

/* At the greatest share every datagram that passes is followed by a period. */
static void the_greatest_share(void)
{
	struct mmc_gilbert model = mmc_gilbert_make(MMC_GILBERT_ONE / 4 * 3, 3);

	CHECK_EQ(model.after_passed, MMC_GILBERT_ONE);
}

CHECK_MAIN(CHECK_TEST(shares_and_periods),
	   CHECK_TEST(a_seed_gives_exact_counts), CHECK_TEST(limits),
	   CHECK_TEST(the_greatest_share))
