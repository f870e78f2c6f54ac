/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is read of the left neighbour, and when: nothing before its advert, no chunk
 * that it lacks or that is here, none twice at a time; whatever it says.
 */
#include "check.h"
#include "core/repair/fetcher.h"
#include "core/wire/message.h"
#include "support/memory.h"
#include "support/prng.h"

#define NRANKS 4
#define BLOCK_CHUNKS 50
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define NWORDS ((NCHUNKS + 63) / 64)
#define SRTT_NS (50 * MMC_US_NS)
#define GENERATION 77

/* Rank 2, whose left neighbour is rank 1. */
struct world {
	struct mmc_layout layout;
	struct mmc_fetcher fetcher;
	struct mmc_bitmap claimed;
	uint64_t claimed_words[NWORDS];
	uint64_t held[NWORDS + 1]; /* the neighbour's bitmap and generation */
	uint8_t *memory;
	uint64_t now_ns;
	uint32_t nchunks_read;
};

static void open_world(struct world *at, uint32_t read_bytes)
{
	*at = (struct world){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, NRANKS, BLOCK_CHUNKS * 100, 100),
		 0);
	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_fetcher_bytes(NCHUNKS));
	mmc_fetcher_init(&at->fetcher, at->memory, 2, &at->layout, read_bytes);
	mmc_fetcher_begin(&at->fetcher, SRTT_NS);
	mmc_bitmap_init(&at->claimed, at->claimed_words, NCHUNKS);
	at->held[NWORDS] = GENERATION;
}

static void close_world(struct world *at)
{
	free(at->memory);
}

static void learn(struct world *at, uint64_t generation, bool has_data)
{
	const struct mmc_advert advert = {
		.generation = generation,
		.has_data = has_data,
	};

	mmc_fetcher_learn(&at->fetcher, &advert, at->now_ns);
}

static void want(struct world *at, uint32_t first, uint32_t count)
{
	mmc_fetcher_want(&at->fetcher, &at->claimed,
			 (struct mmc_run){ .first = first, .count = count },
			 at->now_ns);
}

static void hold(struct world *at, uint32_t chunk)
{
	at->held[chunk / 64] |= UINT64_C(1) << chunk % 64;
}

static bool next_map(struct world *at, struct mmc_run *words)
{
	if (!mmc_fetcher_map(&at->fetcher, &at->claimed, at->now_ns, words))
		return false;
	CHECK(words->count > 0 && words->first + words->count <= NWORDS);
	return true;
}

/* Lets the read of words succeed with what the neighbour holds. */
static bool map_comes(struct world *at, struct mmc_run words)
{
	uint64_t bytes[NWORDS + 1];

	memcpy(bytes, at->held + words.first, words.count * 8);
	bytes[words.count] = at->held[NWORDS];
	return mmc_fetcher_mapped(&at->fetcher, words, (const uint8_t *)bytes,
				  at->now_ns);
}

/* Reads what is to be read now; returns the number of chunks. */
static uint32_t read_all(struct world *at)
{
	uint32_t nchunks = 0;
	struct mmc_run run;

	while (next_map(at, &run))
		CHECK(map_comes(at, run));
	while (mmc_fetcher_data(&at->fetcher, &at->claimed, &run)) {
		nchunks += run.count;
		for (uint32_t c = run.first; c < run.first + run.count; c++) {
			CHECK(at->held[c / 64] >> c % 64 & 1);
			CHECK(!mmc_bitmap_test_and_set(&at->claimed, c));
		}
		CHECK(mmc_fetcher_over(&at->fetcher, run, GENERATION));
	}
	at->nchunks_read += nchunks;
	return nchunks;
}

static uint32_t ask(struct world *at, bool *direct)
{
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns;
	uint32_t nchunks = 0;

	while (mmc_fetcher_ask(&at->fetcher, &at->claimed, at->now_ns, runs,
			       &nruns, direct)) {
		CHECK(nruns > 0 && nruns <= MMC_RUNS_MAX);
		for (uint32_t i = 0; i < nruns; i++) {
			CHECK(runs[i].count > 0);
			CHECK(runs[i].first + runs[i].count <= NCHUNKS);
			nchunks += runs[i].count;
		}
		if (!*direct)
			break;
	}
	return nchunks;
}

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

/* Looking again: after one round trip, then ever more rarely, then at once. */
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

/* What has come in another way is neither looked for nor read. */
static void forgets_what_has_come(void)
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
	CHECK(map_comes(&at, words));
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
		map_comes(&at, run);
	while (mmc_fetcher_data(&at.fetcher, &at.claimed, &run)) {
		CHECK(run.count <= 2);
		nreads++;
	}
	CHECK_EQ(nreads, MMC_READS_MAX);
	CHECK_EQ(mmc_fetcher_deadline(&at.fetcher), at.fetcher.lease_ns);
	CHECK(mmc_fetcher_over(&at.fetcher, run, GENERATION));
	CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
	close_world(&at);
}

/* Without an advert, or one that has data, it is asked for that. */
static void asks_for_the_advert(void)
{
	struct world at;
	struct mmc_run run;
	bool direct = true;

	for (unsigned known = 0; known < 2; known++) {
		open_world(&at, 4096);
		if (known)
			learn(&at, GENERATION, false);
		CHECK_EQ(ask(&at, &direct), 0);
		want(&at, 5, 3);
		CHECK(!next_map(&at, &run));
		CHECK_EQ(ask(&at, &direct), 3);
		CHECK(!direct);
		CHECK_EQ(ask(&at, &direct), 0);
		CHECK(mmc_fetcher_deadline(&at.fetcher) > at.now_ns);
		at.now_ns = mmc_fetcher_deadline(&at.fetcher);
		CHECK_EQ(ask(&at, &direct), 3);
		learn(&at, GENERATION, true);
		CHECK_EQ(ask(&at, &direct), 0);
		CHECK(next_map(&at, &run));
		close_world(&at);
	}
}

/* Whose memory cannot be read is asked for the chunks, each time they are lost. */
static void asks_directly_where_nothing_can_be_read(void)
{
	struct world at;
	struct mmc_run run;
	bool direct = false;

	for (unsigned why = 0; why < 3; why++) {
		open_world(&at, why == 0 ? 100 : why == 1 ? 0 : 4096);
		learn(&at, why == 2 ? 0 : GENERATION, true);
		for (int i = 0; i < 3; i++) {
			want(&at, 100, 7);
			CHECK(!next_map(&at, &run));
			CHECK_EQ(ask(&at, &direct), 7);
			CHECK(direct);
			CHECK_EQ(ask(&at, &direct), 0);
		}
		want(&at, 0, NCHUNKS);
		CHECK_EQ(ask(&at, &direct), NCHUNKS);
		close_world(&at);
	}
}

/* A generation that is another's, or a read that fails, ends all reading. */
static void trusts_no_other_generation(void)
{
	struct world at;
	struct mmc_run words;
	struct mmc_run run;
	bool direct;

	for (unsigned why = 0; why < 4; why++) {
		open_world(&at, 4096);
		learn(&at, GENERATION, true);
		want(&at, 0, 20);
		hold(&at, 3);
		CHECK(next_map(&at, &words));
		if (why == 0) {
			at.held[NWORDS] = 0;
			CHECK(!map_comes(&at, words));
		} else if (why == 1) {
			CHECK(!mmc_fetcher_mapped(&at.fetcher, words, NULL,
						  at.now_ns));
		} else {
			CHECK(map_comes(&at, words));
			CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
			CHECK(!mmc_fetcher_over(&at.fetcher, run,
						why == 2 ? 0 : GENERATION + 1));
		}
		CHECK_EQ(at.fetcher.nreading, 0);
		learn(&at, GENERATION, true);
		CHECK(!next_map(&at, &run));
		CHECK_EQ(ask(&at, &direct), 20);
		CHECK(direct);
		close_world(&at);
	}
}

/* A later advert tells more, but of the same memory. */
static void contradictory_adverts(void)
{
	struct world at;

	open_world(&at, 4096);
	learn(&at, GENERATION, false);
	learn(&at, GENERATION + 1, true);
	CHECK(!at.fetcher.advert.has_data);
	learn(&at, GENERATION, true);
	CHECK(at.fetcher.advert.has_data);
	learn(&at, GENERATION, false);
	learn(&at, GENERATION + 1, true);
	CHECK(at.fetcher.advert.has_data);
	CHECK_EQ(at.fetcher.advert.generation, GENERATION);
	close_world(&at);
}

/* What has been wanted for long is asked of its owner, first to be gathered. */
static void owners_are_asked_in_the_end(void)
{
	struct world at;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint64_t begin_ns;
	uint32_t owner;
	uint32_t nruns;
	uint32_t n = 0;
	bool direct;

	open_world(&at, 4096);
	learn(&at, GENERATION, true);
	want(&at, 40, 20); /* of ranks 0 and 1 */
	want(&at, 199, 1); /* the last of rank 3 */
	begin_ns = at.now_ns;
	for (int i = 0; i < 1000 && n < 6; i++) {
		at.now_ns = mmc_fetcher_deadline(&at.fetcher);
		read_all(&at);
		while (mmc_fetcher_lease(&at.fetcher, &at.claimed, at.now_ns,
					 &owner, runs, &nruns, &direct)) {
			static const uint32_t owners[] = { 0, 1, 3 };

			CHECK(at.now_ns >= begin_ns + 5 * MMC_MS_NS);
			CHECK_EQ(owner, owners[n % 3]);
			CHECK_EQ(direct, owner == 1 || n >= 3);
			CHECK_EQ(nruns, 1);
			CHECK_EQ(runs[0].count, owner == 3 ? 1 : 10);
			n++;
		}
	}
	CHECK_EQ(n, 6);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		hold(&at, c);
	at.now_ns += MMC_MS_NS;
	CHECK_EQ(read_all(&at), 21);
	for (int i = 0; mmc_fetcher_deadline(&at.fetcher) != MMC_NEVER_NS;
	     i++) {
		at.now_ns = mmc_fetcher_deadline(&at.fetcher);
		read_all(&at);
		CHECK(!mmc_fetcher_lease(&at.fetcher, &at.claimed, at.now_ns,
					 &owner, runs, &nruns, &direct));
		if (!CHECK(i < 100))
			break;
	}
	close_world(&at);
}

/* Random wants, holdings and failures: no chunk twice, none that is lacking. */
static void all_comes(void)
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
			struct mmc_run runs[MMC_RUNS_MAX];
			uint32_t owner;
			uint32_t nruns;
			bool direct;

			at.now_ns = mmc_fetcher_deadline(&at.fetcher) +
				    (at.now_ns == 0);
			read_all(&at);
			while (mmc_fetcher_lease(&at.fetcher, &at.claimed,
						 at.now_ns, &owner, runs,
						 &nruns, &direct))
				;
		}
		if (!CHECK_EQ(at.nchunks_read, nwanted))
			round = 200;
		close_world(&at);
	}
}

CHECK_MAIN(CHECK_TEST(reads_what_is_there), CHECK_TEST(looks_ever_more_rarely),
	   CHECK_TEST(forgets_what_has_come),
	   CHECK_TEST(no_more_than_one_read_brings),
	   CHECK_TEST(asks_for_the_advert),
	   CHECK_TEST(asks_directly_where_nothing_can_be_read),
	   CHECK_TEST(trusts_no_other_generation),
	   CHECK_TEST(contradictory_adverts),
	   CHECK_TEST(owners_are_asked_in_the_end), CHECK_TEST(all_comes))
