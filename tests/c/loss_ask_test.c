/* SPDX-License-Identifier: BSD-3-Clause */
/* A receiver waits for answers, and asks again when none come. */
#include "receiver.h"

/*
 * While chains go on, only a quarter of the budget is requested; then the rest at once.
 */
static void part_of_the_budget(void)
{
	struct receiver at;

	receiver_open(&at, 3, 130, 3, MMC_REPAIR_NAK);
	begin(&at);
	at.loss.budget_chunks = 200;
	hear(&at, 130);
	hear(&at, 130 + 125);
	CHECK_EQ(ask_for_gaps(&at), 50);
	mmc_loss_expect_nothing(&at.loss, mmc_repair_policy(MMC_REPAIR_NAK),
				at.now_ns);
	CHECK_EQ(ask(&at), 150);
	receiver_close(&at);
}

/* Keeps the link busy for `time_ns` with the chunks from `*next` on. */
static void stay_busy(struct receiver *at, uint32_t *next, uint64_t time_ns)
{
	for (uint64_t end_ns = at->now_ns + time_ns; at->now_ns < end_ns;) {
		at->now_ns += at->loss.allowance_ns * 3 / 4;
		hear(at, (*next)++);
		CHECK_EQ(ask(at), 0);
	}
}

/* Three senders have 1000 chunks each; rank 1's second and third chunk are lost. */
static void open_with_gap(struct receiver *at)
{
	receiver_open(at, 3, 1000, 3, MMC_REPAIR_NAK);
	begin(at);
	hear(at, 1000);
	hear(at, 1003);
}

/* The two chunks of the gap are requested, and arrive 5 ms later on a busy link. */
static void open_with_slow_answer(struct receiver *at, uint32_t *next)
{
	open_with_gap(at);
	CHECK_EQ(ask_for_gaps(at), 2);
	stay_busy(at, next, 5 * MMC_MS_NS);
	claim(at, 1001);
	claim(at, 1002);
	mmc_loss_arrived(&at->loss, 1002, at->now_ns);
}

/* While other chunks arrive, a repetition waits longer than answers have taken. */
static void waits_as_long_as_answers_take(void)
{
	struct receiver at;
	uint64_t asked_ns;
	uint32_t next = 2000;

	open_with_slow_answer(&at, &next);
	stay_busy(&at, &next, MMC_BACKOFF_MAX_NS);
	hear(&at, 1010);
	CHECK(waits_for_question(&at, 1009));
	asked_ns = at.now_ns;
	stay_busy(&at, &next, 5 * MMC_MS_NS);
	CHECK(waits_for_question(&at, 1009));
	CHECK(at.now_ns - asked_ns >= 5 * MMC_MS_NS);
	receiver_close(&at);
}

/*
 * Hears `nbursts` bursts of ten chunks, from `*next` on, with 3 ms between them, and
 * returns how many chunks are requested meanwhile.
 */
static unsigned hear_bursts(struct receiver *at, uint32_t *next,
			    unsigned nbursts)
{
	unsigned nrequested = 0;

	while (nbursts-- > 0) {
		for (unsigned i = 0; i < 10; i++)
			hear(at, (*next)++);
		for (unsigned i = 0; i < 60; i++) {
			at->now_ns += MMC_MS_NS / 20;
			nrequested += ask(at);
		}
	}
	return nrequested;
}

/*
 * A link that brings chunks in bursts is not idle between two of them, although they
 * are many round trips apart: an answer may be behind the next burst.
 */
static void waits_between_bursts(void)
{
	struct receiver at;
	uint32_t next = 2000;

	receiver_open(&at, 3, 1000, 3, MMC_REPAIR_NAK);
	begin(&at);
	CHECK_EQ(hear_bursts(&at, &next, 2), 0);
	hear(&at, 1000);
	hear(&at, 1003);
	CHECK_EQ(hear_bursts(&at, &next, 6), 2);
	receiver_close(&at);
}

/* On an idle link a request is repeated soon, however long earlier answers took. */
static void hastens_on_an_idle_link(void)
{
	struct receiver at;
	uint64_t asked_ns;
	uint32_t next = 2000;

	open_with_slow_answer(&at, &next);
	hear(&at, 1010);
	CHECK(waits_for_question(&at, 1009));
	asked_ns = at.now_ns;
	CHECK(waits_for_question(&at, 1009));
	CHECK(at.now_ns - asked_ns <= 2 * (at.loss.trip_ns + MMC_MS_NS));
	receiver_close(&at);
}

/*
 * While no answers arrive, every second request is a direct NAK for few chunks. Their
 * number grows as answers arrive, and shrinks when none do.
 */
static void asks_directly_for_few(void)
{
	struct receiver at;
	unsigned few = 0;

	receiver_open(&at, 3, 1000, 3, MMC_REPAIR_NAK);
	begin(&at);
	at.loss.budget_chunks = 200;
	mmc_loss_expect_nothing(&at.loss, mmc_repair_policy(MMC_REPAIR_NAK),
				at.now_ns);
	for (unsigned round = 0; round < 8; round++) {
		unsigned nasked;

		at.now_ns = mmc_loss_deadline(&at.loss);
		nasked = ask(&at);
		if (nasked == 0)
			continue;
		CHECK(nasked <= (mmc_loss_asks_directly(&at.loss)
					 ? MMC_LOSS_DIRECT_CHUNKS
					 : 200u));
		few += mmc_loss_asks_directly(&at.loss);
	}
	CHECK(few > 0);
	CHECK_EQ(at.loss.direct_chunks, MMC_LOSS_DIRECT_CHUNKS);
	while (at.loss.direct_chunks == MMC_LOSS_DIRECT_CHUNKS) {
		for (uint32_t c = 1000; c < 3000; c++)
			if (at.nasked[c] > 0)
				claim(&at, c);
		if (!CHECK(at.loss.retry.at_ns < MMC_NEVER_NS))
			break;
		at.now_ns = at.loss.retry.at_ns;
		ask(&at);
	}
	CHECK_EQ(at.loss.direct_chunks, 2 * MMC_LOSS_DIRECT_CHUNKS);
	receiver_close(&at);
}

/*
 * On a busy link a late chunk holds no window back, and counts as lost once a window of
 * chunks has followed it.
 */
static void late_on_a_busy_link(void)
{
	struct receiver at;
	uint32_t next = 2000;
	uint32_t window_chunks;

	open_with_gap(&at);
	at.schedule.window_chunks = 20;
	at.loss.schedule.window_chunks = 20;
	window_chunks = 20 * at.schedule.nchains;
	stay_busy(&at, &next, 2 * at.loss.allowance_ns);
	CHECK_EQ(at.loss.chains[1].ndrained, 4);
	hear(&at, 1002);
	CHECK_EQ(at.loss.chains[1].ndrained, 4);
	while (next < 2000 + window_chunks)
		stay_busy(&at, &next, at.loss.allowance_ns / 2);
	CHECK_EQ(at.loss.nlost, 0);
	while (at.nasked[1001] == 0 && CHECK(next < 2000 + 2 * window_chunks)) {
		at.now_ns += at.loss.allowance_ns / 2;
		hear(&at, next++);
		ask(&at);
	}
	CHECK_EQ(at.nasked[1002], 0);
	CHECK_EQ(at.loss.nlost, 1);
	receiver_close(&at);
}

CHECK_MAIN(CHECK_TEST(part_of_the_budget),
	   CHECK_TEST(waits_as_long_as_answers_take),
	   CHECK_TEST(waits_between_bursts), CHECK_TEST(asks_directly_for_few),
	   CHECK_TEST(hastens_on_an_idle_link), CHECK_TEST(late_on_a_busy_link))
