/* SPDX-License-Identifier: BSD-3-Clause */
/* A receiver asks silent senders how much they have sent. */
#include "receiver.h"

#define NOBODY UINT32_MAX

/* Returns the sender that is to be asked about now, or NOBODY. */
static uint32_t silent_rank(struct receiver *at)
{
	const struct mmc_sequence *silent = mmc_silence_ask(
		&at->loss, &at->claimed, no_windows, at->now_ns);

	return silent != NULL ? silent->rank : NOBODY;
}

/* A silent sender is asked about, and what its record says was sent counts as seen. */
static void silence(void)
{
	static struct receiver at;

	receiver_open(&at, 4, 10, 2, MMC_REPAIR_NAK);
	begin(&at);
	hear(&at, 20); /* rank 2, chain 0, turn 1; chain 1 is silent */
	at.now_ns += 2 * at.loss.quiet_ns;
	CHECK_EQ(silent_rank(&at), 2);
	CHECK_EQ(silent_rank(&at), 1);
	CHECK_EQ(silent_rank(&at), NOBODY);
	mmc_silence_tell(&at.loss, 1, 4, true, at.now_ns);
	CHECK(waits_for_question(&at, 10));
	CHECK_EQ(at.nasked[13], 1);
	CHECK_EQ(at.nasked[14], 0);
	CHECK_EQ(at.nasked[30], 0);
	receiver_close(&at);
}

/* A record that claims too much reaches no further than the sender's block. */
static void hostile_records(void)
{
	static struct receiver at;

	for (uint32_t nchains = 1; nchains <= 4; nchains++) {
		receiver_open(&at, 4, 10, nchains, MMC_REPAIR_NAK);
		begin(&at);
		for (uint32_t owner = 0; owner < 4; owner++) {
			mmc_silence_tell(&at.loss, owner, 0, true, at.now_ns);
			mmc_silence_tell(&at.loss, owner, UINT32_MAX, owner % 2,
					 at.now_ns);
		}
		CHECK(waits_for_question(&at, 39));
		receiver_close(&at);
	}
}

/*
 * Chunks that an overtaken sender has not sent yet are not lost. The sender is asked
 * how far it is, and only what it says was sent is requested.
 */
static void overtaken(void)
{
	static struct receiver at;

	receiver_open(&at, 4, 10, 1, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t i = 0; i < 10; i++)
		send_own(&at, i);
	hear(&at, 10);
	hear(&at, 11);
	for (uint32_t c = 20; c < 30; c++)
		hear(&at, c);
	CHECK_EQ(at.loss.chains[0].ndrained, 22);
	at.now_ns += at.loss.quiet_ns - 1;
	CHECK_EQ(ask(&at), 0);
	CHECK_EQ(silent_rank(&at), NOBODY);
	at.now_ns++;
	CHECK_EQ(silent_rank(&at), 1);
	mmc_silence_tell(&at.loss, 1, 5, true, at.now_ns);
	CHECK(waits_for_question(&at, 14));
	CHECK_EQ(at.loss.nlost, 3);
	CHECK_EQ(at.loss.chains[0].ndrained, 25);
	/* A new chunk is drained when it arrives; a lost one was so already. */
	hear(&at, 15);
	claim(&at, 13);
	CHECK_EQ(at.loss.chains[0].ndrained, 26);
	receiver_close(&at);
}

/*
 * When more senders overtake one than can be followed, that one is no longer
 * followed: its missing chunks hold no window back, but are lost only when they
 * do not arrive.
 */
static void overtaken_by_many(void)
{
	static struct receiver at;

	receiver_open(&at, MMC_CHAIN_SEQUENCES + 2, 10, 1, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t i = 0; i < 10; i++)
		send_own(&at, i);
	hear(&at, 10);
	for (uint32_t s = 2; s < MMC_CHAIN_SEQUENCES + 1; s++)
		hear(&at, 10 * s);
	CHECK_EQ(ask(&at), 0);
	hear(&at, 10 * (MMC_CHAIN_SEQUENCES + 1));
	CHECK_EQ(ask(&at), 0);
	CHECK_EQ(at.loss.chains[0].ndrained, 20 + MMC_CHAIN_SEQUENCES);
	hear(&at, 12);
	CHECK_EQ(at.loss.chains[0].ndrained, 20 + MMC_CHAIN_SEQUENCES);
	CHECK(waits_for_question(&at, 11));
	CHECK_EQ(at.nasked[12], 0);
	CHECK_EQ(at.nasked[19], 1);
	receiver_close(&at);
}

/* However many senders have ended, nothing is lost of one that has not begun. */
static void overtaken_by_who_has_ended(void)
{
	static struct receiver at;
	uint32_t nranks = 3 * MMC_CHAIN_SEQUENCES;

	receiver_open(&at, nranks, 2, 1, MMC_REPAIR_NAK);
	begin(&at);
	send_own(&at, 0);
	send_own(&at, 1);
	for (uint32_t s = 2; s < nranks; s++) {
		hear(&at, 2 * s);
		if (s != 5)
			hear(&at, 2 * s + 1);
		CHECK_EQ(ask(&at), 0);
	}
	CHECK_EQ(at.loss.chains[0].turn, 1);
	hear(&at, 3);
	CHECK_EQ(ask_for_gaps(&at), 1);
	CHECK_EQ(at.nasked[2], 1);
	hear(&at, 11);
	claim(&at, 2);
	CHECK_EQ(at.loss.nopen, 0);
	receiver_close(&at);
}

/* While chunks of others arrive, a silent sender is at first left alone. */
static void busy_link(void)
{
	static struct receiver at;
	uint64_t begin_ns;
	uint32_t peer;

	receiver_open(&at, 3, 130, 3, MMC_REPAIR_NAK);
	begin(&at);
	at.loss.schedule.window_chunks = 10;
	begin_ns = at.now_ns;
	for (uint32_t c = 130; c < 259; c++) {
		hear(&at, c);
		at.now_ns += at.loss.quiet_ns / 2;
		peer = silent_rank(&at);
		if (peer == NOBODY)
			continue;
		CHECK_EQ(peer, 2);
		CHECK(at.now_ns - begin_ns >= MMC_BACKOFF_MAX_NS);
		at.nquestions++;
	}
	CHECK(at.nquestions > 0);
	receiver_close(&at);
}

/* Where a window takes long, a sender may wait for it, and is asked about later. */
static void slow_link(void)
{
	static struct receiver at;
	uint64_t begin_ns;

	receiver_open(&at, 3, 130, 3, MMC_REPAIR_NAK);
	begin(&at);
	at.loss.schedule.window_chunks = 50;
	begin_ns = at.now_ns;
	for (uint32_t c = 130; silent_rank(&at) == NOBODY && c < 259; c++) {
		hear(&at, c);
		at.now_ns += at.loss.quiet_ns - 1;
	}
	/* Twice the time of 150 chunks, or 50 ms. */
	CHECK(at.now_ns - begin_ns >= 290 * at.loss.quiet_ns ||
	      at.now_ns - begin_ns >= 50 * MMC_MS_NS);
	receiver_close(&at);
}

/* While the link is busy, every further question is as rare as the first. */
static void busy_link_questions_are_rare(void)
{
	static struct receiver at;
	uint64_t begin_ns;
	unsigned nquestions = 0;

	receiver_open(&at, 3, 130, 3, MMC_REPAIR_NAK);
	begin(&at);
	begin_ns = at.now_ns;
	hear(&at, 130);
	while (at.now_ns < begin_ns + 10 * MMC_BACKOFF_MAX_NS) {
		at.loss.heard_ns = at.now_ns;
		at.loss.chains[1].sequences[0].heard_ns = at.now_ns;
		at.now_ns += at.loss.quiet_ns / 2;
		nquestions += silent_rank(&at) != NOBODY;
	}
	CHECK(nquestions > 5);
	CHECK(nquestions <= 10);
	receiver_close(&at);
}

/* Chunks are known by arrival, by the sender's word, or all after its turn. */
static void what_is_known(void)
{
	static struct receiver at;

	receiver_open(&at, 4, 10, 1, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t i = 0; i < 10; i++)
		send_own(&at, i);
	CHECK_EQ(mmc_silence_known(&at.loss, 0).nchunks, 10);
	CHECK_EQ(mmc_silence_known(&at.loss, 1).nchunks, 0);
	hear(&at, 13);
	CHECK_EQ(mmc_silence_known(&at.loss, 1).nchunks, 4);
	mmc_silence_tell(&at.loss, 1, 7, false, at.now_ns);
	CHECK_EQ(mmc_silence_known(&at.loss, 1).nchunks, 7);
	CHECK_EQ(mmc_silence_known(&at.loss, 1).rank, 1);
	receiver_close(&at);
}

/* A sender that another rank misses is asked about at once, but only once. */
static void wanted_by_another(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 100, 2, MMC_REPAIR_NAK);
	begin(&at);
	at.now_ns += at.loss.quiet_ns / 2;
	hear(&at, 200);
	at.now_ns += at.loss.quiet_ns / 2 + 1;
	CHECK_EQ(silent_rank(&at), NOBODY);
	mmc_silence_want(&at.loss, 1, at.now_ns);
	CHECK_EQ(silent_rank(&at), 1);
	for (unsigned i = 0; i < 10; i++) {
		mmc_silence_want(&at.loss, 1, at.now_ns);
		CHECK_EQ(silent_rank(&at), NOBODY);
		at.now_ns += at.loss.quiet_ns / 20;
	}
	receiver_close(&at);
}

/* On an idle link, chunks that have reached only other ranks are lost. */
static void vouched_for(void)
{
	static struct receiver at;
	struct mmc_sequence *silent;

	receiver_open(&at, 3, 10, 2, MMC_REPAIR_NAK);
	begin(&at);
	at.now_ns += 2 * at.loss.quiet_ns;
	silent = mmc_silence_ask(&at.loss, &at.claimed, no_windows, at.now_ns);
	CHECK_EQ(silent->rank, 1);
	silent->nvain = 5;
	mmc_silence_vouch(&at.loss, (struct mmc_sent){ 1, 4 }, at.now_ns);
	CHECK_EQ(silent->nvain, 0);
	at.now_ns += at.loss.allowance_ns;
	CHECK_EQ(silent_rank(&at), NOBODY);
	at.now_ns = at.loss.overdue_ns;
	CHECK_EQ(ask(&at), 4);
	CHECK_EQ(at.nasked[13], 1);
	receiver_close(&at);
}

CHECK_MAIN(CHECK_TEST(silence), CHECK_TEST(hostile_records),
	   CHECK_TEST(overtaken), CHECK_TEST(overtaken_by_many),
	   CHECK_TEST(overtaken_by_who_has_ended), CHECK_TEST(busy_link),
	   CHECK_TEST(slow_link), CHECK_TEST(busy_link_questions_are_rare),
	   CHECK_TEST(what_is_known), CHECK_TEST(wanted_by_another),
	   CHECK_TEST(vouched_for))
