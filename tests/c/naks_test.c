/* SPDX-License-Identifier: BSD-3-Clause */
/* NAKs of several ranks against a model that has a flag for each rank and chunk. */
#include "check.h"
#include "core/repair/naks.h"
#include "support/prng.h"

#define NPEERS 5
#define NCHUNKS 60

static bool waits[NPEERS][NCHUNKS];

static void check_model(const struct mmc_naks *naks)
{
	for (uint32_t peer = 0; peer < NPEERS; peer++)
		for (uint32_t c = 0; c < NCHUNKS; c++) {
			uint32_t nwaiting = 0;
			uint32_t nothers;

			for (uint32_t p = 0; p < NPEERS; p++)
				nwaiting += p != peer && waits[p][c];
			CHECK_EQ(mmc_naks_include(naks, peer, c, &nothers),
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

/* A rank waits for just the chunks that it asked for and was not sent since. */
static void as_the_model(void)
{
	struct mmc_prng prng = { .state = 11 };
	static struct mmc_naks naks;

	for (unsigned step = 0; step < 300; step++) {
		struct mmc_run run = random_run(&prng);
		uint32_t peer = (uint32_t)mmc_prng_below(&prng, NPEERS);
		bool all = mmc_prng_below(&prng, 4) == 0;

		for (uint32_t c = run.first; c < run.first + run.count; c++)
			if (!waits[peer][c]) {
				mmc_naks_add(&naks, peer,
					     (struct mmc_run){ c, 1 });
				waits[peer][c] = true;
			}
		run = random_run(&prng);
		mmc_naks_remove(&naks, all ? MMC_PEER_ALL : peer, run);
		for (uint32_t p = 0; p < NPEERS; p++)
			for (uint32_t c = run.first; c < run.first + run.count;
			     c++)
				waits[p][c] &= !all && p != peer;
		check_model(&naks);
		if (naks.count + NCHUNKS > MMC_NAKS_MAX) {
			naks.count = 0;
			memset(waits, 0, sizeof(waits));
		}
	}
}

/* When chunks in the middle of a NAK are sent, its two ends remain. */
static void a_hole(void)
{
	static struct mmc_naks naks;
	uint32_t nothers;

	mmc_naks_add(&naks, 3, (struct mmc_run){ 10, 10 });
	mmc_naks_remove(&naks, 3, (struct mmc_run){ 14, 2 });
	CHECK_EQ(naks.count, 2);
	CHECK(mmc_naks_include(&naks, 3, 13, &nothers));
	CHECK(!mmc_naks_include(&naks, 3, 14, &nothers));
	CHECK(!mmc_naks_include(&naks, 3, 15, &nothers));
	CHECK(mmc_naks_include(&naks, 3, 16, &nothers));
	CHECK(mmc_naks_include(&naks, 3, 19, &nothers));
	CHECK(!mmc_naks_include(&naks, 3, 20, &nothers));
}

/*
 * Without room for another NAK, the part behind a hole is forgotten: the rank
 * that wants it will ask again.
 */
static void no_room(void)
{
	static struct mmc_naks naks;
	uint32_t nothers;

	for (uint32_t i = 0; mmc_naks_has_room(&naks); i++)
		mmc_naks_add(&naks, i, (struct mmc_run){ 0, 30 });
	CHECK_EQ(naks.count, MMC_NAKS_MAX);
	mmc_naks_remove(&naks, 7, (struct mmc_run){ 10, 10 });
	CHECK_EQ(naks.count, MMC_NAKS_MAX);
	CHECK(mmc_naks_include(&naks, 7, 9, &nothers));
	CHECK(!mmc_naks_include(&naks, 7, 25, &nothers));
	CHECK(mmc_naks_include(&naks, 8, 25, &nothers));
}

CHECK_MAIN(CHECK_TEST(as_the_model), CHECK_TEST(a_hole), CHECK_TEST(no_room))
