/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks of several ranks against a model that has a flag for each rank and chunk. */
#include "check.h"
#include "core/repair/naks.h"
#include "support/prng.h"

#define NPEERS 5
#define NCHUNKS 60

static bool waits[NPEERS][NCHUNKS];

static void check_model(const struct mmc_asks *asks)
{
	for (uint32_t peer = 0; peer < NPEERS; peer++)
		for (uint32_t c = 0; c < NCHUNKS; c++) {
			uint32_t nwaiting = 0;
			uint32_t nothers;

			for (uint32_t p = 0; p < NPEERS; p++)
				nwaiting += p != peer && waits[p][c];
			CHECK_EQ(mmc_asks_by(asks, peer, c, &nothers),
				 waits[peer][c]);
			CHECK_EQ(nothers, nwaiting);
		}
}

static struct mmc_run random_run(struct mmc_prng *prng)
{
	uint32_t first = (uint32_t)mmc_prng_below(prng, NCHUNKS);

	return (struct mmc_run){
		first,
		1 + (uint32_t)mmc_prng_below(prng, NCHUNKS - first),
	};
}

/* Each rank waits for exactly what it asked for and was not sent since. */
static void as_the_model(void)
{
	struct mmc_prng prng = { .state = 11 };
	static struct mmc_asks asks;

	for (unsigned step = 0; step < 300; step++) {
		struct mmc_run run = random_run(&prng);
		uint32_t peer = (uint32_t)mmc_prng_below(&prng, NPEERS);
		bool all = mmc_prng_below(&prng, 4) == 0;

		for (uint32_t c = run.first; c < run.first + run.count; c++)
			if (!waits[peer][c]) {
				mmc_asks_add(&asks, peer,
					     (struct mmc_run){ c, 1 });
				waits[peer][c] = true;
			}
		run = random_run(&prng);
		mmc_asks_settle(&asks, all ? MMC_PEER_ALL : peer, run);
		for (uint32_t p = 0; p < NPEERS; p++)
			for (uint32_t c = run.first; c < run.first + run.count;
			     c++)
				waits[p][c] &= !all && p != peer;
		check_model(&asks);
		if (asks.count + NCHUNKS > MMC_ASKS_MAX) {
			asks.count = 0;
			memset(waits, 0, sizeof(waits));
		}
	}
}

/* What is sent from the middle of an ask leaves its two ends. */
static void a_hole(void)
{
	static struct mmc_asks asks;
	uint32_t nothers;

	mmc_asks_add(&asks, 3, (struct mmc_run){ 10, 10 });
	mmc_asks_settle(&asks, 3, (struct mmc_run){ 14, 2 });
	CHECK_EQ(asks.count, 2);
	CHECK(mmc_asks_by(&asks, 3, 13, &nothers));
	CHECK(!mmc_asks_by(&asks, 3, 14, &nothers));
	CHECK(!mmc_asks_by(&asks, 3, 15, &nothers));
	CHECK(mmc_asks_by(&asks, 3, 16, &nothers));
	CHECK(mmc_asks_by(&asks, 3, 19, &nothers));
	CHECK(!mmc_asks_by(&asks, 3, 20, &nothers));
}

/* Without room the end behind a hole is forgotten: its sender asks again. */
static void no_room(void)
{
	static struct mmc_asks asks;
	uint32_t nothers;

	for (uint32_t i = 0; mmc_asks_room(&asks); i++)
		mmc_asks_add(&asks, i, (struct mmc_run){ 0, 30 });
	CHECK_EQ(asks.count, MMC_ASKS_MAX);
	mmc_asks_settle(&asks, 7, (struct mmc_run){ 10, 10 });
	CHECK_EQ(asks.count, MMC_ASKS_MAX);
	CHECK(mmc_asks_by(&asks, 7, 9, &nothers));
	CHECK(!mmc_asks_by(&asks, 7, 25, &nothers));
	CHECK(mmc_asks_by(&asks, 8, 25, &nothers));
}

CHECK_MAIN(CHECK_TEST(as_the_model), CHECK_TEST(a_hole), CHECK_TEST(no_room))
