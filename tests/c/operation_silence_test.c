/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about silent senders in the tree of reports, of which rank 0 is the root
 * and rank 1 has the children 9 and 10.
 */
#include "core/operation/silence.h"

#include "one_operation.h"

#define CHILD 9
#define OTHER_CHILD 10
#define PARENT 0
#define SENDER 5

static struct mmc_op_config config_of(uint32_t rank)
{
	struct mmc_op_config config = one_config;

	config.nranks = 11;
	config.rank = rank;
	return config;
}

static struct mmc_message sent_message(const struct mmc_sent *sent, uint32_t n)
{
	struct mmc_message message = one_message(MMC_MESSAGE_SENT);

	message.nitems = n;
	memcpy(message.sent, sent, n * sizeof(*sent));
	return message;
}

/* Delivers a question of `source`, which knows of `nchunks` of SENDER. */
static void ask_about_sender(struct one *one, uint32_t source, uint32_t nchunks)
{
	const struct mmc_sent sent = { SENDER, nchunks };
	const struct mmc_message question = sent_message(&sent, 1);

	one_hear(one, source, &question);
}

/*
 * A parent tells its child how many chunks it knows of: all of its own, some of
 * a sender that it has heard, and none of a sender that it has not.
 */
static void a_child_is_answered(void)
{
	const struct mmc_op_config config = config_of(1);
	const struct mmc_sent asked[] = { { 1, 0 }, { SENDER, 0 }, { 6, 0 } };
	const struct mmc_message question = sent_message(asked, 3);
	const struct mmc_message *answer;
	static struct one one;

	one_open(&one, &config);
	one_begin(&one);
	one_bring(&one, SENDER * 5 + 2);
	one_hear(&one, CHILD, &question);
	CHECK_EQ(mmc_op_deadline(one.op), 0);
	one_run(&one);
	answer = one_find_said(&one, CHILD, MMC_MESSAGE_SENT);
	if (CHECK(answer != NULL) && CHECK_EQ(answer->nitems, 3)) {
		CHECK_EQ(answer->sent[0].rank, 1);
		CHECK_EQ(answer->sent[0].nchunks, 5);
		CHECK_EQ(answer->sent[1].rank, SENDER);
		CHECK_EQ(answer->sent[1].nchunks, 3);
		CHECK_EQ(answer->sent[2].rank, 6);
		CHECK_EQ(answer->sent[2].nchunks, 0);
	}
	one_run(&one);
	CHECK(one_find_said(&one, CHILD, MMC_MESSAGE_SENT) == NULL);
	one_close(&one);
}

/* A child's newer question replaces its older one, but not another child's. */
static void the_newest_question_counts(void)
{
	const struct mmc_op_config config = config_of(1);
	const struct mmc_sent older[] = { { 6, 0 }, { 7, 0 } };
	const struct mmc_message question = sent_message(older, 2);
	static struct one one;
	unsigned nanswers = 0;

	one_open(&one, &config);
	one_begin(&one);
	one_hear(&one, CHILD, &question);
	one_hear(&one, OTHER_CHILD, &question);
	ask_about_sender(&one, CHILD, 0);
	one_run(&one);
	for (unsigned i = 0; i < one.nsaid; i++) {
		const struct one_said *said = &one.said[i];

		if (said->message.kind != MMC_MESSAGE_SENT ||
		    said->peer == PARENT)
			continue;
		nanswers++;
		CHECK_EQ(said->message.nitems, said->peer == CHILD ? 1 : 2);
		CHECK_EQ(said->message.sent[0].rank,
			 said->peer == CHILD ? SENDER : 6);
	}
	CHECK_EQ(nanswers, 2);
	one_close(&one);
}

/* Only children are answered, and ranks that do not exist are left out. */
static void nonsense_is_not_answered(void)
{
	const struct mmc_op_config config = config_of(1);
	const struct mmc_sent asked[] = { { 11, 0 },
					  { UINT32_MAX, 9 },
					  { 2, 0 } };
	const struct mmc_message question = sent_message(asked, 3);
	const struct mmc_message *answer;
	static struct one one;

	one_open(&one, &config);
	one_begin(&one);
	one_hear(&one, 2, &question);
	one_hear(&one, PARENT, &question);
	one_run(&one);
	for (uint32_t r = 0; r < config.nranks; r++)
		CHECK(one_find_said(&one, r, MMC_MESSAGE_SENT) == NULL);
	one_hear(&one, CHILD, &question);
	one_run(&one);
	answer = one_find_said(&one, CHILD, MMC_MESSAGE_SENT);
	if (CHECK(answer != NULL) && CHECK_EQ(answer->nitems, 1))
		CHECK_EQ(answer->sent[0].rank, 2);
	one_close(&one);
}

/* The root asks for all, so only its question is answered by multicast. */
static void the_root_asks_for_all(void)
{
	const struct mmc_op_config config = config_of(1);
	struct mmc_message question = one_message(MMC_MESSAGE_RECORD);
	static struct one one;

	one_open(&one, &config);
	one_begin(&one);
	one_hear(&one, PARENT, &question);
	question.stamp_us = 11;
	one_hear(&one, CHILD, &question);
	one_run(&one);
	CHECK(one_find_said(&one, MMC_PEER_ALL, MMC_MESSAGE_RECORD) == NULL);
	one_hear(&one, PARENT, &question);
	one_run(&one);
	CHECK(one_find_said(&one, MMC_PEER_ALL, MMC_MESSAGE_RECORD) != NULL);
	one_run(&one);
	CHECK(one_find_said(&one, MMC_PEER_ALL, MMC_MESSAGE_RECORD) == NULL);
	one_close(&one);
}

/* Runs until this rank asks about SENDER; returns whom: SENDER or PARENT. */
static uint32_t await_question(struct one *one)
{
	for (unsigned i = 0; i < 1000; i++) {
		const struct mmc_message *message;

		message = one_find_said(one, SENDER, MMC_MESSAGE_RECORD);
		if (message != NULL && message->stamp_us != 0)
			return SENDER;
		message = one_find_said(one, PARENT, MMC_MESSAGE_SENT);
		for (uint32_t k = 0; message != NULL && k < message->nitems;
		     k++)
			if (message->sent[k].rank == SENDER)
				return PARENT;
		one_run_next(one, one->now_ns + MMC_S_NS);
	}
	CHECK(false);
	return MMC_PEER_NONE;
}

/* The root asks the sender; others ask their parent twice, then the sender. */
static void the_way_of_a_question(void)
{
	static struct one one;
	struct mmc_op_config config = config_of(PARENT);

	one_open(&one, &config);
	one_begin(&one);
	CHECK_EQ(await_question(&one), SENDER);
	one_close(&one);
	config = config_of(1);
	one_open(&one, &config);
	one_begin(&one);
	CHECK_EQ(await_question(&one), PARENT);
	one_run_next(&one, one.now_ns + MMC_S_NS);
	CHECK_EQ(await_question(&one), PARENT);
	one_run_next(&one, one.now_ns + MMC_S_NS);
	CHECK_EQ(await_question(&one), SENDER);
	one_close(&one);
}

/* A parent that knows no more than its child passes the question on at once. */
static void questions_are_passed_on(void)
{
	const struct mmc_op_config config = config_of(1);
	static struct one one;
	uint64_t begin_ns;
	uint64_t alone_ns;

	one_open(&one, &config);
	one_begin(&one);
	begin_ns = one.now_ns;
	await_question(&one);
	alone_ns = one.now_ns - begin_ns;
	one_close(&one);
	CHECK(alone_ns > 0);
	one_open(&one, &config);
	one_begin(&one);
	one.now_ns += alone_ns - 1;
	ask_about_sender(&one, CHILD, 0);
	one_run(&one);
	CHECK_EQ(await_question(&one), PARENT);
	CHECK_EQ(one.now_ns, begin_ns + alone_ns - 1);
	one_close(&one);
}

/*
 * Chunks that the parent says were sent, but that have not arrived, are asked
 * for as lost; another rank's word has no effect.
 */
static void the_parents_word_counts(void)
{
	const struct mmc_op_config config = config_of(1);
	const struct mmc_sent word = { SENDER, 4 };
	const struct mmc_message answer = sent_message(&word, 1);
	const struct mmc_message *nak = NULL;
	static struct one one;

	for (unsigned vouches = 0; vouches < 2; vouches++) {
		one_open(&one, &config);
		one_begin(&one);
		one.now_ns += 50 * MMC_MS_NS;
		one_hear(&one, vouches ? PARENT : 2, &answer);
		for (unsigned i = 0; i < 20; i++) {
			one_run_next(&one, one.now_ns + MMC_S_NS);
			nak = one_find_said(&one, SENDER, MMC_MESSAGE_NAK);
			if (nak != NULL)
				break;
		}
		CHECK_EQ(nak != NULL, vouches);
		if (nak != NULL && CHECK_EQ(nak->nitems, 1)) {
			CHECK_EQ(nak->runs[0].first, SENDER * 5);
			CHECK_EQ(nak->runs[0].count, 4);
		}
		one_close(&one);
	}
}

CHECK_MAIN(CHECK_TEST(a_child_is_answered),
	   CHECK_TEST(the_newest_question_counts),
	   CHECK_TEST(nonsense_is_not_answered),
	   CHECK_TEST(the_root_asks_for_all), CHECK_TEST(the_way_of_a_question),
	   CHECK_TEST(questions_are_passed_on),
	   CHECK_TEST(the_parents_word_counts))
