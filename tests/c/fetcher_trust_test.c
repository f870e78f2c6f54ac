/* SPDX-License-Identifier: BSD-3-Clause */
/* A fetcher believes its neighbour's memory only so far, and then asks other ranks. */
#include "fetcher_world.h"

/*
 * Takes the NAKs that are due; returns how many chunks they request, and if directly.
 */
static uint32_t ask(struct world *at, bool *direct)
{
	struct mmc_nak nak;
	uint32_t nchunks = 0;

	while (mmc_fetcher_ask(&at->fetcher, &at->claimed, at->now_ns, &nak)) {
		CHECK_EQ(nak.peer, 1);
		CHECK(nak.nruns > 0 && nak.nruns <= MMC_RUNS_MAX);
		for (uint32_t i = 0; i < nak.nruns; i++) {
			CHECK(nak.runs[i].count > 0);
			CHECK(nak.runs[i].first + nak.runs[i].count <= NCHUNKS);
			nchunks += nak.runs[i].count;
		}
		*direct = nak.direct;
		if (!*direct)
			break;
	}
	return nchunks;
}

/* Without an advert that has data, the neighbour is asked for one by a NAK. */
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

/* A neighbour that cannot be read gets a direct NAK each time chunks are lost. */
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

/* A foreign generation or a failed read ends all reading. */
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
			CHECK(!bitmap_arrives(&at, words));
		} else if (why == 1) {
			CHECK(!mmc_fetcher_mapped(&at.fetcher, words, NULL,
						  at.now_ns));
		} else {
			CHECK(bitmap_arrives(&at, words));
			CHECK(mmc_fetcher_data(&at.fetcher, &at.claimed, &run));
			CHECK(!mmc_fetcher_read_ended(
				&at.fetcher, run,
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

/* A later advert may add the data, but only of the same generation. */
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

/*
 * Owners are asked for chunks that have been wanted for long: first by a NAK, later by
 * a direct one. The left neighbour gets a direct one at once.
 */
static void owners_are_asked_in_the_end(void)
{
	struct world at;
	struct mmc_nak nak;
	uint64_t begin_ns;
	uint32_t n = 0;

	open_world(&at, 4096);
	learn(&at, GENERATION, true);
	want(&at, 40, 20); /* of ranks 0 and 1 */
	want(&at, 199, 1); /* the last of rank 3 */
	begin_ns = at.now_ns;
	for (int i = 0; i < 1000 && n < 6; i++) {
		at.now_ns = mmc_fetcher_deadline(&at.fetcher);
		read_all(&at);
		while (mmc_fetcher_ask_owner(&at.fetcher, &at.claimed,
					     at.now_ns, &nak)) {
			static const uint32_t owners[] = { 0, 1, 3 };

			CHECK(at.now_ns >= begin_ns + 5 * MMC_MS_NS);
			CHECK_EQ(nak.peer, owners[n % 3]);
			CHECK_EQ(nak.direct, nak.peer == 1 || n >= 3);
			CHECK_EQ(nak.nruns, 1);
			CHECK_EQ(nak.runs[0].count, nak.peer == 3 ? 1 : 10);
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
		CHECK(!mmc_fetcher_ask_owner(&at.fetcher, &at.claimed,
					     at.now_ns, &nak));
		if (!CHECK(i < 100))
			break;
	}
	close_world(&at);
}

CHECK_MAIN(CHECK_TEST(asks_for_the_advert),
	   CHECK_TEST(asks_directly_where_nothing_can_be_read),
	   CHECK_TEST(trusts_no_other_generation),
	   CHECK_TEST(contradictory_adverts),
	   CHECK_TEST(owners_are_asked_in_the_end))
