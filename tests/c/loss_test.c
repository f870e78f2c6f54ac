/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver's requests in virtual time: none is made before its allowance or twice in
 * a retry interval, and what was lost is requested until it arrives.
 */
#include "receiver.h"

/* Without loss nothing is requested, however many chains there are. */
static void nothing_lost(void)
{
	static struct receiver at;

	for (uint32_t nchains = 1; nchains <= 4; nchains++) {
		receiver_open(&at, 4, 10, nchains, MMC_REPAIR_NAK);
		CHECK_EQ(mmc_loss_deadline(&at.loss), MMC_NEVER_NS);
		begin(&at);
		for (uint32_t turn = 0; turn < 4; turn++)
			for (uint32_t i = 0; i < 10 * nchains; i++) {
				uint32_t owner = turn * nchains + i % nchains;

				at.now_ns += 1000;
				if (owner < 4)
					hear(&at, owner * 10 + i / nchains);
				CHECK_EQ(ask(&at), 0);
			}
		CHECK_EQ(at.loss.nlost, 0);
		receiver_close(&at);
	}
}

/* A gap, and only the gap, is requested of its owner after the allowance. */
static void a_gap(void)
{
	static struct receiver at;
	uint64_t heard_ns;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t c = 20; c < 30; c++)
		if (c != 24 && c != 25)
			hear(&at, c);
	heard_ns = at.now_ns;
	CHECK_EQ(ask(&at), 0);
	CHECK(waits_for_question(&at, 24));
	CHECK(at.now_ns >= heard_ns + at.loss.allowance_ns);
	CHECK(at.now_ns <=
	      heard_ns + at.loss.allowance_ns + at.loss.jitter_max_ns);
	CHECK_EQ(at.nasked[25], 1);
	CHECK_EQ(at.nasked[23] + at.nasked[26] + at.nasked[30], 0);
	CHECK_EQ(at.loss.nlost, 2);
	CHECK_EQ(at.nquestions, 1);
	CHECK(waits_for_question(&at, 24));
	CHECK_EQ(at.loss.nlost, 2);
	receiver_close(&at);
}

/* A chunk that arrives late, but within the allowance, is not requested. */
static void reordered(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	begin(&at);
	hear(&at, 25);
	for (uint32_t c = 20; c < 25; c++)
		hear(&at, c);
	at.now_ns = mmc_loss_deadline(&at.loss);
	CHECK_EQ(ask(&at), 0);
	CHECK_EQ(at.loss.nlost, 0);
	receiver_close(&at);
}

/* Chunks that are always late by less than the allowance are never requested. */
static void reordered_all_along(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 130, 3, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t c = 130; c < 260; c += 2) {
		hear(&at, c + 1);
		at.now_ns += at.loss.allowance_ns * 9 / 10;
		CHECK_EQ(ask(&at), 0);
		hear(&at, c);
	}
	at.now_ns += 2 * (at.loss.allowance_ns + at.loss.jitter_max_ns);
	CHECK_EQ(ask(&at), 0);
	CHECK_EQ(at.loss.nlost, 0);
	receiver_close(&at);
}

/* More gaps than fit one request, of several owners, are requested once each. */
static void many_gaps(void)
{
	static struct receiver at;

	for (unsigned repair = 0; repair < 2; repair++) {
		receiver_open(&at, 3, 130, 3, (enum mmc_repair)repair);
		begin(&at);
		for (uint32_t c = 131; c < 390; c += 2)
			hear(&at, c);
		CHECK(waits_for_question(&at, 388));
		for (uint32_t c = 130; c < 389; c++)
			CHECK_EQ(at.nasked[c],
				 !mmc_bitmap_test(&at.claimed, c));
		CHECK_EQ(at.loss.nlost, 130);
		receiver_close(&at);
	}
}

/*
 * A chunk whose repair is announced need not be requested. If the repair is lost too,
 * the chunk must be, whether the gap was seen before the announcement or after it.
 */
static void announced_and_lost_again(void)
{
	static struct receiver at;
	const struct mmc_run run = { .first = 24, .count = 1 };

	for (unsigned early = 0; early < 2; early++)
		for (unsigned pause = 0; pause < 2; pause++) {
			receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
			begin(&at);
			for (uint32_t c = 20; c < 40; c++) {
				if (c == (early ? 23 : 27)) {
					mmc_loss_suppress(&at.loss, &at.claimed,
							  run, at.now_ns);
					CHECK_EQ(at.loss.nlost, 1);
					at.now_ns += pause * 700 * MMC_US_NS;
					ask(&at);
				}
				if (c != 24)
					hear(&at, c);
			}
			CHECK(waits_for_question(&at, 24));
			receiver_close(&at);
		}
}

/* A lost chunk is requested again and again, ever more rarely. */
static void persistent(void)
{
	static struct receiver at;
	uint64_t first_ns;

	for (unsigned repair = 0; repair < 2; repair++) {
		receiver_open(&at, 3, 20, 1, (enum mmc_repair)repair);
		begin(&at);
		hear(&at, 39);
		first_ns = at.now_ns;
		for (int i = 0; i < 30; i++)
			CHECK(waits_for_question(&at, 21));
		CHECK(at.now_ns - first_ns > 20 * MMC_BACKOFF_MAX_NS);
		CHECK(at.now_ns - first_ns < 80 * MMC_BACKOFF_MAX_NS);
		receiver_close(&at);
	}
}

/* Chunks that arrived before the plan was known are not missing, nor counted twice. */
static void early_chunks(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	for (uint32_t c = 20; c < 35; c += 3)
		mmc_bitmap_test_and_set(&at.claimed, c);
	begin(&at);
	CHECK_EQ(at.loss.chains[1].sequences[0].nleft, 15);
	CHECK_EQ(at.loss.chains[1].sequences[0].end, 13);
	CHECK_EQ(at.loss.chains[1].ndrained, 5);
	CHECK(waits_for_question(&at, 21));
	CHECK_EQ(at.nasked[33], 0);
	receiver_close(&at);
}

/* At random, suppresses the request for a chunk, and delivers the chunk. */
static void hear_some(struct receiver *at, struct mmc_prng *prng,
		      uint32_t owner, uint32_t place)
{
	struct mmc_run run = {
		.first = owner * at->layout.block_chunks + place,
		.count = 1,
	};

	if (owner == 0)
		send_own(at, place);
	if (mmc_prng_below(prng, 8) == 0)
		mmc_loss_suppress(&at->loss, &at->claimed, run, at->now_ns);
	if (mmc_prng_below(prng, 3) != 0)
		hear(at, run.first);
	ask(at);
}

/* Lets some silent senders say how much they have sent, and some repairs arrive. */
static void answer_some(struct receiver *at, struct mmc_prng *prng)
{
	const struct mmc_sequence *silent;

	while ((silent = mmc_silence_ask(&at->loss, &at->claimed, no_windows,
					 at->now_ns)))
		if (mmc_prng_below(prng, 2) == 0)
			mmc_silence_tell(&at->loss, silent->rank,
					 at->layout.block_chunks,
					 mmc_prng_below(prng, 2) == 0,
					 at->now_ns);
	ask(at);
	for (uint32_t c = 0; c < at->layout.nchunks; c++)
		if (at->asked_ns[c] == at->now_ns &&
		    mmc_prng_below(prng, 2) == 0)
			claim(at, c);
}

/* Loses chunks, answers and announcements at random, until all chunks have arrived. */
static void run_randomly(struct receiver *at, struct mmc_prng *prng)
{
	const struct mmc_run all = { .count = at->layout.nchunks };
	uint32_t nchains = at->schedule.nchains;

	for (uint32_t turn = 0; turn * nchains < at->layout.nranks; turn++)
		for (uint32_t i = 0; i < at->layout.block_chunks; i++)
			for (uint32_t m = 0; m < nchains; m++) {
				uint32_t owner = turn * nchains + m;

				at->now_ns += 20 * MMC_US_NS;
				if (owner < at->layout.nranks)
					hear_some(at, prng, owner, i);
			}
	while (mmc_bitmap_count_run(&at->claimed, all) < all.count) {
		uint64_t next_ns = mmc_loss_deadline(&at->loss);

		if (!CHECK(next_ns < END_NS))
			return;
		at->now_ns = next_ns > at->now_ns ? next_ns : at->now_ns + 1;
		answer_some(at, prng);
	}
}

/* All chunks arrive, although chunks, answers and announcements are lost at random. */
static void everything_arrives(void)
{
	static struct receiver at;
	struct mmc_prng prng = { .state = 19 };

	for (uint32_t seed = 0; seed < 600; seed++) {
		uint32_t nranks = 2 + seed % 8;

		prng.state = seed;
		receiver_open(&at, nranks,
			      1 + (uint32_t)mmc_prng_below(&prng, 40),
			      1 + (uint32_t)mmc_prng_below(&prng, nranks),
			      (enum mmc_repair)(seed % 2));
		begin(&at);
		run_randomly(&at, &prng);
		for (uint32_t c = 0; c < at.schedule.nchains; c++)
			CHECK_EQ(at.loss.chains[c].ndrained,
				 mmc_schedule_length(&at.schedule, c));
		receiver_close(&at);
		if (check_failures > 0) {
			fprintf(stderr, "seed %" PRIu32 "\n", seed);
			break;
		}
	}
}

/* No more is requested than fits the budget; the rest follows as answers arrive. */
static void within_the_budget(void)
{
	struct receiver at;
	uint32_t nwaited = 0;
	uint32_t next = 100;

	receiver_open(&at, 3, 100, 3, MMC_REPAIR_NEIGHBOUR);
	begin(&at);
	at.loss.budget_chunks = 48;
	mmc_loss_expect_nothing(
		&at.loss, mmc_repair_policy(MMC_REPAIR_NEIGHBOUR), at.now_ns);
	while (next < 300) {
		struct mmc_nak nak;

		while (mmc_loss_ask(&at.loss, &at.claimed, at.now_ns, &nak)) {
			CHECK_EQ(nak.peer, 2);
			for (uint32_t i = 0; i < nak.nruns; i++)
				nwaited += nak.runs[i].count;
		}
		CHECK(nwaited <= 48);
		if (!CHECK(nwaited > 0))
			break;
		claim(&at, next++);
		nwaited--;
	}
	CHECK_EQ(at.loss.waited_chunks, 0);
	receiver_close(&at);
}

CHECK_MAIN(CHECK_TEST(within_the_budget), CHECK_TEST(nothing_lost),
	   CHECK_TEST(a_gap), CHECK_TEST(reordered),
	   CHECK_TEST(reordered_all_along), CHECK_TEST(many_gaps),
	   CHECK_TEST(announced_and_lost_again), CHECK_TEST(persistent),
	   CHECK_TEST(early_chunks), CHECK_TEST(everything_arrives))
