/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fetcher reads nothing from the left neighbour before the advert. It reads no chunk
 * that the neighbour lacks or that is claimed here, and no chunk twice at a time.
 */
#include "fetcher_world.h"

/* The fetcher reads the wanted chunks that are there, and the others once they are. */
static void reads_what_is_there(void)
{
	struct world at;

	open_world(&at, 4096);
	learn(&at, GENERATION, true);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		if (c % 3 != 0)
			hold(&at, c);
	want(&at, 10, 100);
	CHECK_EQ(mmc_fetcher_deadline(&at.fetcher), at.now_ns);
	CHECK_EQ(read_all(&at), 67);
	CHECK(mmc_fetcher_deadline(&at.fetcher) > at.now_ns);
	CHECK_EQ(read_all(&at), 0);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		hold(&at, c);
	at.now_ns = mmc_fetcher_deadline(&at.fetcher);
	CHECK_EQ(read_all(&at), 33);
	close_world(&at);
}

/* The fetcher looks ever more rarely while it finds nothing; when hurried, at once. */
static void looks_ever_more_rarely(void)
{
	struct world at;
	uint64_t waited_ns = SRTT_NS;

	open_world(&at, 4096);
	learn(&at, GENERATION, true);
	want(&at, 60, 10);
	read_all(&at);
	for (int i = 0; i < 7; i++) { /* until the lease ends */
		uint64_t next_ns = mmc_fetcher_deadline(&at.fetcher);

		waited_ns = waited_ns * 2 < MMC_MS_NS ? waited_ns * 2
						      : MMC_MS_NS;
		CHECK(next_ns <= at.now_ns + waited_ns);
		CHECK(next_ns > at.now_ns);
		at.now_ns = next_ns;
		read_all(&at);
	}
	CHECK_EQ(waited_ns, MMC_MS_NS);
	mmc_fetcher_hurry(&at.fetcher, at.now_ns);
	CHECK_EQ(mmc_fetcher_deadline(&at.fetcher), at.now_ns);
	hold(&at, 65);
	CHECK_EQ(read_all(&at), 1);
	close_world(&at);
}

/* A chunk that has arrived in another way is neither looked for nor read. */
static void forgets_what_has_arrived(void)
{
	struct world at;
	struct mmc_run words;
	struct mmc_run run;

	open_world(&at, 4096);
	learn(&at, GENERATION, true);
	want(&at, 64, 64);
	for (uint32_t c = 64; c < 128; c++)
		hold(&at, c);
	CHECK(next_map(&at, &words));
	CHECK_EQ(words.first, 1);
	CHECK_EQ(words.count, 1);
	CHECK(bitmap_arrives(&at, words));
	mmc_bitmap_set_run(&at.claimed,
			   (struct mmc_run){ .first = 70, .count = 50 });
	CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
	CHECK_EQ(run.first, 64);
	CHECK_EQ(run.count, 6);
	want(&at, 64, 64);
	CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
	CHECK_EQ(run.first, 120);
	CHECK_EQ(run.count, 8);
	CHECK(!mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
	close_world(&at);
}

/* No read names more chunks than it can bring, and at most MMC_READS_MAX reads run. */
static void no_more_than_one_read_brings(void)
{
	struct world at;
	struct mmc_run run;
	unsigned nreads = 0;

	open_world(&at, 2 * 100 + MMC_GENERATION_BYTES);
	learn(&at, GENERATION, true);
	want(&at, 0, NCHUNKS);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		hold(&at, c);
	while (next_map(&at, &run))
		bitmap_arrives(&at, run);
	while (mmc_fetcher_data(&at.fetcher, &at.claimed, &run)) {
		CHECK(run.count <= 2);
		nreads++;
	}
	CHECK_EQ(nreads, MMC_READS_MAX);
	CHECK_EQ(mmc_fetcher_deadline(&at.fetcher), at.fetcher.lease.ends_ns);
	CHECK(mmc_fetcher_read_ended(&at.fetcher, run, GENERATION));
	CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
	close_world(&at);
}

/* With random wants and holdings each chunk is read once, and only if it is held. */
static void all_arrives(void)
{
	struct mmc_prng prng = { .state = 5 };
	struct world at;

	for (unsigned round = 0; round < 200; round++) {
		uint32_t nwanted = 0;

		open_world(&at, 108 + (uint32_t)mmc_prng_below(&prng, 2000));
		learn(&at, GENERATION, true);
		for (uint32_t c = 0; c < NCHUNKS; c++) {
			if (mmc_prng_below(&prng, 3) == 0) {
				want(&at, c, 1);
				nwanted++;
			}
			if (mmc_prng_below(&prng, 2) == 0)
				hold(&at, c);
			if (mmc_prng_below(&prng, 9) == 0)
				read_all(&at);
		}
		for (uint32_t c = 0; c < NCHUNKS; c++)
			hold(&at, c);
		for (int i = 0; i < 1000 && at.nchunks_read < nwanted; i++) {
			struct mmc_nak nak;

			at.now_ns = mmc_fetcher_deadline(&at.fetcher) +
				    (at.now_ns == 0);
			read_all(&at);
			while (mmc_fetcher_ask_owner(&at.fetcher, &at.claimed,
						     at.now_ns, &nak))
				;
		}
		if (!CHECK_EQ(at.nchunks_read, nwanted))
			round = 200;
		close_world(&at);
	}
}

CHECK_MAIN(CHECK_TEST(reads_what_is_there), CHECK_TEST(looks_ever_more_rarely),
	   CHECK_TEST(forgets_what_has_arrived),
	   CHECK_TEST(no_more_than_one_read_brings), CHECK_TEST(all_arrives))
