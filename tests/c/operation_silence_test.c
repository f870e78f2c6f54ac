/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about silent senders in the tree of reports, of which rank 0 is the root
 * and rank 1 has the children 9 and 10.
 */
#include "core/operation/silence.h"

#include "subject.h"

#define CHILD 9
#define OTHER_CHILD 10
#define PARENT 0
#define SENDER 5

static struct mmc_op_config config_of(uint32_t rank)
{
	struct mmc_op_config config = subject_config;

	config.nranks = 11;
	config.rank = rank;
	return config;
}

static struct mmc_message sent_message(const struct mmc_sent *sent, uint32_t n)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_SENT);

	message.nitems = n;
	memcpy(message.sent, sent, n * sizeof(*sent));
	return message;
}

/* Delivers a question of `source`, which knows of `nchunks` of SENDER. */
static void ask_about_sender(struct subject *subject, uint32_t source,
			     uint32_t nchunks)
{
	const struct mmc_sent sent = { SENDER, nchunks };
	const struct mmc_message question = sent_message(&sent, 1);

	subject_hear(subject, source, &question);
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
	static struct subject subject;

	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_deliver(&subject, SENDER * 5 + 2);
	subject_hear(&subject, CHILD, &question);
	CHECK_EQ(mmc_op_deadline(subject.op), 0);
	subject_run(&subject);
	answer = subject_find_said(&subject, CHILD, MMC_MESSAGE_SENT);
	if (CHECK(answer != NULL) && CHECK_EQ(answer->nitems, 3)) {
		CHECK_EQ(answer->sent[0].rank, 1);
		CHECK_EQ(answer->sent[0].nchunks, 5);
		CHECK_EQ(answer->sent[1].rank, SENDER);
		CHECK_EQ(answer->sent[1].nchunks, 3);
		CHECK_EQ(answer->sent[2].rank, 6);
		CHECK_EQ(answer->sent[2].nchunks, 0);
	}
	subject_run(&subject);
	CHECK(subject_find_said(&subject, CHILD, MMC_MESSAGE_SENT) == NULL);
	subject_close(&subject);
}

/* A child's newer question replaces its older one, but not another child's. */
static void the_newest_question_counts(void)
{
	const struct mmc_op_config config = config_of(1);
	const struct mmc_sent older[] = { { 6, 0 }, { 7, 0 } };
	const struct mmc_message question = sent_message(older, 2);
	static struct subject subject;
	unsigned nanswers = 0;

	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_hear(&subject, CHILD, &question);
	subject_hear(&subject, OTHER_CHILD, &question);
	ask_about_sender(&subject, CHILD, 0);
	subject_run(&subject);
	for (unsigned i = 0; i < subject.nsaid; i++) {
		const struct subject_said *said = &subject.said[i];

		if (said->message.kind != MMC_MESSAGE_SENT ||
		    said->peer == PARENT)
			continue;
		nanswers++;
		CHECK_EQ(said->message.nitems, said->peer == CHILD ? 1 : 2);
		CHECK_EQ(said->message.sent[0].rank,
			 said->peer == CHILD ? SENDER : 6);
	}
	CHECK_EQ(nanswers, 2);
	subject_close(&subject);
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
	static struct subject subject;

	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_hear(&subject, 2, &question);
	subject_hear(&subject, PARENT, &question);
	subject_run(&subject);
	for (uint32_t r = 0; r < config.nranks; r++)
		CHECK(subject_find_said(&subject, r, MMC_MESSAGE_SENT) == NULL);
	subject_hear(&subject, CHILD, &question);
	subject_run(&subject);
	answer = subject_find_said(&subject, CHILD, MMC_MESSAGE_SENT);
	if (CHECK(answer != NULL) && CHECK_EQ(answer->nitems, 1))
		CHECK_EQ(answer->sent[0].rank, 2);
	subject_close(&subject);
}

/* The root asks for all, so only its question is answered by multicast. */
static void the_root_asks_for_all(void)
{
	const struct mmc_op_config config = config_of(1);
	struct mmc_message question = subject_message(MMC_MESSAGE_RECORD);
	static struct subject subject;

	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_hear(&subject, PARENT, &question);
	question.stamp_us = 11;
	subject_hear(&subject, CHILD, &question);
	subject_run(&subject);
	CHECK(subject_find_said(&subject, MMC_PEER_ALL, MMC_MESSAGE_RECORD) ==
	      NULL);
	subject_hear(&subject, PARENT, &question);
	subject_run(&subject);
	CHECK(subject_find_said(&subject, MMC_PEER_ALL, MMC_MESSAGE_RECORD) !=
	      NULL);
	subject_run(&subject);
	CHECK(subject_find_said(&subject, MMC_PEER_ALL, MMC_MESSAGE_RECORD) ==
	      NULL);
	subject_close(&subject);
}

/* Runs until this rank asks about SENDER; returns whom: SENDER or PARENT. */
static uint32_t await_question(struct subject *subject)
{
	for (unsigned i = 0; i < 1000; i++) {
		const struct mmc_message *message;

		message =
			subject_find_said(subject, SENDER, MMC_MESSAGE_RECORD);
		if (message != NULL && message->stamp_us != 0)
			return SENDER;
		message = subject_find_said(subject, PARENT, MMC_MESSAGE_SENT);
		for (uint32_t k = 0; message != NULL && k < message->nitems;
		     k++)
			if (message->sent[k].rank == SENDER)
				return PARENT;
		subject_run_next(subject, subject->now_ns + MMC_S_NS);
	}
	CHECK(false);
	return MMC_PEER_NONE;
}

/* The root asks the sender; others ask their parent twice, then the sender. */
static void the_way_of_a_question(void)
{
	static struct subject subject;
	struct mmc_op_config config = config_of(PARENT);

	subject_open(&subject, &config);
	subject_begin(&subject);
	CHECK_EQ(await_question(&subject), SENDER);
	subject_close(&subject);
	config = config_of(1);
	subject_open(&subject, &config);
	subject_begin(&subject);
	CHECK_EQ(await_question(&subject), PARENT);
	subject_run_next(&subject, subject.now_ns + MMC_S_NS);
	CHECK_EQ(await_question(&subject), PARENT);
	subject_run_next(&subject, subject.now_ns + MMC_S_NS);
	CHECK_EQ(await_question(&subject), SENDER);
	subject_close(&subject);
}

/* A parent that knows no more than its child passes the question on at once. */
static void questions_are_passed_on(void)
{
	const struct mmc_op_config config = config_of(1);
	static struct subject subject;
	uint64_t begin_ns;
	uint64_t alone_ns;

	subject_open(&subject, &config);
	subject_begin(&subject);
	begin_ns = subject.now_ns;
	await_question(&subject);
	alone_ns = subject.now_ns - begin_ns;
	subject_close(&subject);
	CHECK(alone_ns > 0);
	subject_open(&subject, &config);
	subject_begin(&subject);
	subject.now_ns += alone_ns - 1;
	ask_about_sender(&subject, CHILD, 0);
	subject_run(&subject);
	CHECK_EQ(await_question(&subject), PARENT);
	CHECK_EQ(subject.now_ns, begin_ns + alone_ns - 1);
	subject_close(&subject);
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
	static struct subject subject;

	for (unsigned vouches = 0; vouches < 2; vouches++) {
		subject_open(&subject, &config);
		subject_begin(&subject);
		subject.now_ns += 50 * MMC_MS_NS;
		subject_hear(&subject, vouches ? PARENT : 2, &answer);
		for (unsigned i = 0; i < 20; i++) {
			subject_run_next(&subject, subject.now_ns + MMC_S_NS);
			nak = subject_find_said(&subject, SENDER,
						MMC_MESSAGE_NAK);
			if (nak != NULL)
				break;
		}
		CHECK_EQ(nak != NULL, vouches);
		if (nak != NULL && CHECK_EQ(nak->nitems, 1)) {
			CHECK_EQ(nak->runs[0].first, SENDER * 5);
			CHECK_EQ(nak->runs[0].count, 4);
		}
		subject_close(&subject);
	}
}

CHECK_MAIN(CHECK_TEST(a_child_is_answered),
	   CHECK_TEST(the_newest_question_counts),
	   CHECK_TEST(nonsense_is_not_answered),
	   CHECK_TEST(the_root_asks_for_all), CHECK_TEST(the_way_of_a_question),
	   CHECK_TEST(questions_are_passed_on),
	   CHECK_TEST(the_parents_word_counts))
