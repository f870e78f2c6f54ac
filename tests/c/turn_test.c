/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank sends in its turn and within its window; one rank alone, in virtual time. */
#include "sender.h"

/* The first rank of a chain sends all at once if its block fits the window. */
static void first_turns(void)
{
	struct sender at;

	for (uint32_t rank = 0; rank < 5; rank++) {
		sender_open(&at, rank, 5, 33, 5, 1000);
		CHECK_EQ(send_all(&at), 33);
		CHECK(mmc_turn_ended(&at.turn));
		CHECK_EQ(mmc_turn_deadline(&at.turn), MMC_NEVER_NS);
		sender_close(&at);
	}
}

/* A rank without chunks has nothing to send, and waits for no turn. */
static void empty_blocks(void)
{
	struct sender at;

	for (uint32_t rank = 0; rank < 3; rank++) {
		sender_open(&at, rank, 3, 0, 2, 1000);
		CHECK(mmc_turn_ended(&at.turn));
		CHECK_EQ(send_all(&at), 0);
		CHECK_EQ(mmc_turn_deadline(&at.turn), MMC_NEVER_NS);
		sender_close(&at);
	}
}

/* A later turn begins when the end of the predecessor's block is in sight. */
static void sees_its_predecessor(void)
{
	struct sender at;

	sender_open(&at, 3, 4, 100, 1, 1000);
	CHECK_EQ(send_all(&at), 0);
	hear(&at, 0, 0, 100);
	hear(&at, 1, 0, 100);
	CHECK_EQ(send_all(&at), 0);
	hear(&at, 2, 0, 50);
	CHECK_EQ(send_all(&at), 0);
	hear(&at, 2, 50, 45);
	CHECK_EQ(send_all(&at), 100);
	CHECK(mmc_turn_ended(&at.turn));
	sender_close(&at);
}

/* A turn also begins when the predecessor says that it has sent all. */
static void takes_its_predecessors_word(void)
{
	struct sender at;

	sender_open(&at, 3, 4, 100, 1, 1000);
	mmc_silence_tell(&at.loss, 2, 100, true, at.now_ns);
	CHECK_EQ(send_all(&at), 100);
	sender_close(&at);
}

/* A silent predecessor is asked, and overtaken if it does not answer. */
static void overtakes_the_silent(void)
{
	struct sender at;
	uint64_t asked_ns;

	sender_open(&at, 3, 4, 100, 1, 1000);
	CHECK_EQ(send_all(&at), 0);
	asked_ns = mmc_turn_deadline(&at.turn);
	CHECK(asked_ns > at.now_ns + 300 * MMC_US_NS);
	CHECK(asked_ns < at.now_ns + 10 * MMC_MS_NS);
	at.now_ns = asked_ns - 1;
	CHECK_EQ(send_all(&at), 0);
	CHECK_EQ(at.nquestions, 0);
	at.now_ns = asked_ns;
	CHECK_EQ(send_all(&at), 0);
	CHECK_EQ(at.nquestions, 1);
	at.now_ns = mmc_turn_deadline(&at.turn);
	CHECK(at.now_ns > asked_ns + 2 * path.srtt_ns);
	CHECK(at.now_ns < asked_ns + 3 * MMC_MS_NS);
	CHECK_EQ(send_all(&at), 100);
	CHECK_EQ(at.nquestions, 1);
	sender_close(&at);
}

/* A predecessor that answers, or sends, is waited for and asked ever more rarely. */
static void waits_for_the_living(void)
{
	struct sender at;
	unsigned nsent = 0;

	for (unsigned sends = 0; sends < 2; sends++) {
		sender_open(&at, 1, 2, 100, 1, 1000);
		for (unsigned i = 0; i < 50 && nsent == 0; i++) {
			unsigned nquestions = at.nquestions;

			nsent += send_all(&at);
			at.now_ns = mmc_turn_deadline(&at.turn);
			if (at.nquestions == nquestions)
				continue;
			at.now_ns -= 100 * MMC_US_NS;
			if (sends)
				hear(&at, 0, i, 1);
			else
				mmc_turn_hear(&at.turn, 0, at.now_ns);
		}
		CHECK_EQ(nsent, 0);
		CHECK(at.now_ns > MMC_S_NS + (sends ? 50 : 300) * MMC_MS_NS);
		sender_close(&at);
	}
}

/* Asking does not put the turn off: if no answer comes, the turn begins. */
static void begins_although_it_asks(void)
{
	struct sender at;
	uint64_t start_ns;

	/* The 60,000 chunks ahead take 60 ms; questions come more often. */
	sender_open(&at, 1, 2, 60000, 1, 100000000 / CHUNK_BYTES);
	start_ns = at.now_ns;
	while (at.now_ns < start_ns + 2 * MMC_S_NS && !at.turn.began) {
		at.now_ns += MMC_MS_NS / 2;
		send_all(&at);
	}
	CHECK(at.turn.began);
	CHECK(at.now_ns < start_ns + 200 * MMC_MS_NS);
	sender_close(&at);
}

/* A rate that was measured while all waited is far too low, and must delay little. */
static void low_rate_delays_little(void)
{
	const struct mmc_path slow = { .srtt_ns = 100 * MMC_US_NS,
				       .rate_bytes_per_s = 1,
				       .lag_ns = MMC_PATH_LAG_NS };
	struct mmc_run run;
	struct sender at;
	uint64_t start_ns;

	sender_open(&at, 1, 2, 100, 1, 100);
	start_ns = at.now_ns;
	while (!mmc_turn_ended(&at.turn) &&
	       CHECK(at.now_ns < start_ns + 100 * MMC_S_NS)) {
		next(&at, &slow, &run);
		at.now_ns += MMC_MS_NS;
	}
	/* At most 100 ms each for the turn, for the window, and for each batch. */
	CHECK(at.now_ns < start_ns + (2 + 100 / 8 + 1) * 100 * MMC_MS_NS);
	sender_close(&at);
}

/* A rank sends no further than the window beyond what all have drained. */
static void window(void)
{
	struct sender at;
	uint32_t nsent = 0;

	sender_open(&at, 0, 4, 500, 1, 100);
	while (nsent < 500 && CHECK(check_failures == 0)) {
		nsent += send_all(&at);
		CHECK_EQ(nsent,
			 mmc_min_u32(500, at.watermark.drained[0] +
						  at.schedule.window_chunks));
		at.watermark.drained[0] += 7;
	}
	sender_close(&at);
}

/* A chain that is far ahead of the slowest has less of a window, but always a half. */
static void holds_back_for_the_slowest(void)
{
	uint32_t leads[] = { 0, 10, 15, 25, 40, 300 };

	for (unsigned i = 0; i < sizeof(leads) / sizeof(*leads); i++) {
		struct sender at;
		uint32_t window, over;

		sender_open(&at, 0, 4, 500, 4, 100);
		window = at.schedule.window_chunks;
		for (uint32_t c = 0; c < 4; c++)
			at.watermark.drained[c] = 100 + (c != 2 ? leads[i] : 0);
		over = leads[i] -
		       mmc_min_u32(leads[i], at.schedule.batch_chunks);
		CHECK_EQ(send_all(&at), 100 + leads[i] + window -
						mmc_min_u32(over, window / 2));
		/* A chain that has ended holds nobody back. */
		at.watermark.drained[2] = 500;
		send_all(&at);
		CHECK_EQ(at.turn.next,
			 mmc_min_u32(500, 100 + leads[i] + window));
		sender_close(&at);
	}
}

/* Whatever a record or a report claims, a rank sends its own block and nothing else. */
static void hostile_positions(void)
{
	struct sender at;

	for (uint32_t rank = 0; rank < 6; rank++) {
		sender_open(&at, rank, 6, 70, 2, 30);
		for (uint32_t other = 0; other < 6; other++)
			mmc_silence_tell(&at.loss, other, UINT32_MAX, true,
					 at.now_ns);
		at.watermark.drained[rank % 2] = UINT32_MAX;
		CHECK_EQ(send_all(&at), 70);
		sender_close(&at);
	}
}

/* With any number of chains, each rank's turn comes by time alone. */
static void every_turn_comes(void)
{
	for (uint32_t nranks = 1; nranks <= 9; nranks++)
		for (uint32_t at_once = 0; at_once <= nranks; at_once++)
			for (uint32_t rank = 0; rank < nranks; rank++) {
				struct sender at;
				unsigned nsteps = 0;

				sender_open(&at, rank, nranks, 50, at_once, 20);
				send_all(&at);
				while (!mmc_turn_ended(&at.turn) &&
				       CHECK(nsteps++ < 200)) {
					wait_for_deadline(&at);
					send_all(&at);
				}
				CHECK(at.now_ns < 2 * MMC_S_NS);
				sender_close(&at);
			}
}

CHECK_MAIN(CHECK_TEST(holds_back_for_the_slowest), CHECK_TEST(first_turns),
	   CHECK_TEST(empty_blocks), CHECK_TEST(sees_its_predecessor),
	   CHECK_TEST(takes_its_predecessors_word),
	   CHECK_TEST(overtakes_the_silent), CHECK_TEST(waits_for_the_living),
	   CHECK_TEST(low_rate_delays_little),
	   CHECK_TEST(begins_although_it_asks), CHECK_TEST(window),
	   CHECK_TEST(hostile_positions), CHECK_TEST(every_turn_comes))
