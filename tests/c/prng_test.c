/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "support/prng.h"

/* The numbers are those of SplitMix64, so that a seed replays a run on any machine. */
static void known_numbers(void)
{
	static const uint64_t numbers[] = {
		UINT64_C(0x599ed017fb08fc85), UINT64_C(0x2c73f08458540fa5),
		UINT64_C(0x883ebce5a3f27c77), UINT64_C(0x3fbef740e9177b3f),
		UINT64_C(0xe3b8346708cb5ecd),
	};
	struct mmc_prng prng = { .state = 1234567 };

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		CHECK_EQ(mmc_prng_next(&prng), numbers[i]);
}

static void below_its_bound(void)
{
	static const uint64_t bounds[] = { 1, 2, 3, 10, 1000, UINT64_MAX };
	struct mmc_prng prng = { .state = check_seed() };
	struct mmc_prng before = prng;

	CHECK_EQ(mmc_prng_below(&prng, 0), 0);
	CHECK_EQ(prng.state, before.state);
	for (unsigned i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
		for (unsigned n = 0; n < 1000; n++)
			CHECK(mmc_prng_below(&prng, bounds[i]) < bounds[i]);
}

/* Every number below a small bound comes about as often as any other. */
static void uniform(void)
{
	enum { BOUND = 10, NDRAWS = 100000 };
	struct mmc_prng prng = { .state = 5 };
	unsigned ndrawn[BOUND] = { 0 };

	for (unsigned i = 0; i < NDRAWS; i++)
		ndrawn[mmc_prng_below(&prng, BOUND)]++;
	for (unsigned i = 0; i < BOUND; i++) {
		/* The standard deviation is 95. */
		CHECK(ndrawn[i] > NDRAWS / BOUND - 500);
		CHECK(ndrawn[i] < NDRAWS / BOUND + 500);
	}
}

static unsigned count_hits(uint64_t parts_per_2_32)
{
	struct mmc_prng prng = { .state = 6 };
	unsigned nhits = 0;

	for (unsigned i = 0; i < 100000; i++)
		nhits += mmc_prng_chance(&prng, parts_per_2_32);
	return nhits;
}

/* A chance out of 2^32 comes true that often. */
static void chances(void)
{
	const uint64_t certain = UINT64_C(1) << 32;

	CHECK_EQ(count_hits(0), 0);
	CHECK_EQ(count_hits(certain), 100000);
	/* The standard deviation is 137. */
	CHECK(count_hits(certain / 4) > 24300);
	CHECK(count_hits(certain / 4) < 25700);
}

CHECK_MAIN(CHECK_TEST(known_numbers), CHECK_TEST(below_its_bound),
	   CHECK_TEST(uniform), CHECK_TEST(chances))
