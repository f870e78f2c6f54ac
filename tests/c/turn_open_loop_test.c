/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank whose window stays full goes on at the pace of others; in virtual time. */
#include "sender.h"

/* A straggler stalls no sender: a window that is full for too long opens bit by bit. */
static void goes_on_open_loop(void)
{
	struct sender at;
	uint64_t start_ns;
	uint64_t opened_ns = 0;
	unsigned nsteps = 0;

	sender_open(&at, 0, 4, 500, 1, 100);
	send_all(&at);
	CHECK(!mmc_turn_ended(&at.turn));
	start_ns = at.now_ns;
	while (!mmc_turn_ended(&at.turn) && CHECK(nsteps++ < 1000)) {
		uint32_t nsent;

		wait_for_deadline(&at);
		nsent = send_all(&at);
		CHECK(nsent <= at.schedule.batch_chunks);
		if (nsent > 0 && opened_ns == 0)
			opened_ns = at.now_ns;
	}
	CHECK(opened_ns >= start_ns + 5 * MMC_MS_NS);
	CHECK(opened_ns <= start_ns + 10 * MMC_MS_NS);
	/* After the wait it sends no faster than the measured rate. */
	CHECK(at.now_ns - opened_ns >= 400 * MMC_US_NS);
	sender_close(&at);
}

/*
 * Takes step `i` while a receiver stands still, so that nothing is drained. In each step two
 * other chains bring a chunk each; in one of `share` steps, if that is not 0, another rank of
 * this chain brings one, too. Returns how many chunks this rank sends.
 */
static uint32_t send_at_pace(struct sender *at, uint32_t i, uint32_t share)
{
	at->now_ns += 3 * MMC_US_NS;
	hear(at, 1, i, 1);
	hear(at, 2, i, 1);
	if (share > 0 && i % share == 0)
		hear(at, 3, i / share, 1);
	return send_all(at);
}

/*
 * While nothing is drained, a chain sends as much as arrives of each other chain,
 * whichever of its ranks sends it.
 */
static void keeps_the_pace_of_others(void)
{
	struct sender at;
	uint32_t batch;

	for (uint32_t share = 0; share <= 2; share++) {
		uint32_t theirs = share > 0 ? 2000 / share : 0;
		uint32_t nsent = 0;

		sender_open(&at, 0, 6, 3000, 3, 100);
		batch = at.schedule.batch_chunks;
		send_all(&at);
		/* Nothing was drained for long, so the sender goes on. */
		at.now_ns += 50 * MMC_MS_NS;
		for (uint32_t i = 0; i < 2000; i++)
			nsent += send_at_pace(&at, i, share);
		CHECK(nsent <= 2000 - theirs + 2 * batch);
		CHECK(nsent + 2 * batch >= 2000 - theirs);
		sender_close(&at);
	}
}

/*
 * Opens a sender of three chains whose window is full, and from which nothing has been
 * drained for long. Returns the chunks of a batch.
 */
static uint32_t open_waiting(struct sender *at)
{
	sender_open(at, 0, 3, 3000, 3, 100);
	send_all(at);
	at->now_ns += 50 * MMC_MS_NS;
	return at->schedule.batch_chunks;
}

/*
 * A batch that is cut short, since parity goes first, delays the next one by no more than it
 * is long: a chain with parity keeps the pace of the others.
 */
static void keeps_pace_in_spite_of_pauses(void)
{
	for (uint32_t span = 10; span <= 100; span += 9) {
		struct sender at;
		uint32_t batch = open_waiting(&at);
		uint32_t nsent = 0;

		for (uint32_t i = 0; i < 2000; i++) {
			at.turn.stop = (at.turn.next / span + 1) * span;
			nsent += send_at_pace(&at, i, 0);
		}
		CHECK(nsent <= 2000 + 2 * batch);
		CHECK(nsent + 2 * batch >= 2000);
		sender_close(&at);
	}
}

/* The first batch beyond a window waits for as many chunks of each other chain. */
static void waits_for_a_batch_of_others(void)
{
	struct sender at;
	uint32_t batch = open_waiting(&at);
	uint32_t i = 0;

	while (send_at_pace(&at, i, 0) == 0 && CHECK(i < 2 * batch))
		i++;
	CHECK(i + 1 >= batch);
	sender_close(&at);
}

/* Chains that have ended set no pace: a rank keeps that of the remaining chains. */
static void goes_faster_with_fewer(void)
{
	struct sender at;
	uint32_t nsent = 0;

	sender_open(&at, 0, 3, 3000, 3, 100);
	send_all(&at);
	hear(&at, 2, 0, 3000);
	CHECK_EQ(at.loss.nopen, 2);
	at.now_ns += 50 * MMC_MS_NS;
	send_all(&at);
	for (uint32_t i = 0; i < 1000; i++) {
		at.now_ns += 3 * MMC_US_NS;
		hear(&at, 1, i, 1);
		nsent += send_all(&at);
	}
	CHECK(nsent + 2 * at.schedule.batch_chunks >= 1000);
	CHECK(nsent <= 1000 + 2 * at.schedule.batch_chunks);
	sender_close(&at);
}

/* While a rank sends at others' pace, its chunks show how many it has sent. */
static void chunks_tell_enough(void)
{
	struct sender at;

	sender_open(&at, 0, 2, 3000, 2, 100);
	for (uint32_t i = 0; i < 3000; i++) {
		at.now_ns += 20 * MMC_US_NS;
		hear(&at, 1, i, 1);
		send_all(&at);
		CHECK(!mmc_turn_take_probe(&at.turn, at.now_ns) || i < 1000);
	}
	CHECK(at.turn.next > 2000);
	sender_close(&at);
}

/* While the window is full, a rank says what it has sent, ever more rarely. */
static void tells_what_it_has_sent(void)
{
	struct mmc_path paths[] = { path, path };

	paths[1].srtt_ns = MMC_PATH_SRTT_MIN_NS;
	for (unsigned p = 0; p < 2; p++) {
		struct sender at;
		unsigned nprobes = 0;
		struct mmc_run run;

		sender_open(&at, 0, 4, 500, 1, 100);
		for (int i = 0; i < 6; i++) {
			while (next(&at, &paths[p], &run))
				;
			nprobes += wait_for_deadline(&at);
		}
		CHECK(nprobes >= 1);
		CHECK(nprobes <= 6);
		sender_close(&at);
	}
}

/* When reports arrive again, the window limits the sender again. */
static void closes_the_loop_again(void)
{
	struct sender at;
	uint64_t start_ns;
	unsigned nsteps = 0;

	sender_open(&at, 0, 4, 500, 1, 100);
	do {
		send_all(&at);
		wait_for_deadline(&at);
	} while (send_all(&at) == 0 && CHECK(nsteps++ < 100));
	at.watermark.drained[0] = at.turn.next - 10;
	CHECK_EQ(send_all(&at), at.schedule.window_chunks - 10);
	start_ns = at.now_ns;
	nsteps = 0;
	while (send_all(&at) == 0 && CHECK(nsteps++ < 100))
		wait_for_deadline(&at);
	CHECK(at.now_ns >= start_ns + 5 * MMC_MS_NS);
	sender_close(&at);
}

CHECK_MAIN(CHECK_TEST(goes_on_open_loop), CHECK_TEST(keeps_the_pace_of_others),
	   CHECK_TEST(keeps_pace_in_spite_of_pauses),
	   CHECK_TEST(waits_for_a_batch_of_others),
	   CHECK_TEST(goes_faster_with_fewer), CHECK_TEST(chunks_tell_enough),
	   CHECK_TEST(tells_what_it_has_sent),
	   CHECK_TEST(closes_the_loop_again))
