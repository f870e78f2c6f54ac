/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation sends control messages with the right contents to the right ranks. */
#include "core/operation/tell.h"

#include "core/operation/liveness.h"
#include "subject.h"

/* The operation runs on rank 1 of four ranks. These are the other three. */
#define LEFT 0
#define RIGHT 2
#define OTHER 3

/* The rank that RIGHT reports as late. */
#define LATE OTHER

/*
 * The flags of a message from a rank that has not entered. The operation under test then
 * stays in its entry barrier.
 */
#define NOT_ENTERED 0

/* Checks that `actions` consists of one message, and decodes it into `said[0]`. */
static void decode_message(struct subject *subject,
			   const struct mmc_actions *actions)
{
	subject->nsaid = 0;
	CHECK_EQ(actions->count, 1);
	subject_note(subject, actions);
}

/* mmc_op_tell_record() sends the record in a message that asks for no answer. */
static void a_record_asks_for_no_answer(void)
{
	static struct mmc_actions actions;
	static struct subject subject;
	const struct mmc_record *record;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	record = &subject.op->record;
	mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
	mmc_op_tell_record(subject.op, OTHER, &actions);
	decode_message(&subject, &actions);
	CHECK_EQ(subject.said[0].peer, OTHER);
	CHECK_EQ(subject.said[0].message.kind, MMC_MESSAGE_RECORD);
	CHECK_EQ(subject.said[0].message.record.flags, MMC_RECORD_ENTERED);
	CHECK_EQ(subject.said[0].message.record.entry_rounds,
		 record->entry_rounds);
	CHECK_EQ(subject.said[0].message.record.sent_chunks,
		 subject.op->own.nchunks);
	CHECK_EQ(subject.said[0].message.record.terms.signature_max,
		 subject_config.signature);
	CHECK_EQ(subject.said[0].message.record.culprit, MMC_PEER_NONE);
	/* A stamp of 0 asks for no answer. */
	CHECK_EQ(subject.said[0].message.stamp_us, 0);
	CHECK_EQ(subject.said[0].message.echo_us, 0);
	CHECK_EQ(subject.said[0].message.late_age_ms, 0);
	subject_close(&subject);
}

/*
 * Until all ranks have entered, the culprit in a message is the rank whose entry this
 * rank awaits. After a failure, the culprit is the rank that caused the failure. This
 * test does not call subject_begin(), so none of the other ranks enters.
 */
static void messages_name_the_culprit(void)
{
	static struct mmc_message message;
	static struct subject subject;

	subject_open(&subject, &subject_config);
	mmc_op_message(subject.op, MMC_MESSAGE_NAK, &message);
	CHECK_EQ(message.kind, MMC_MESSAGE_NAK);
	CHECK_EQ(message.nitems, 0);
	CHECK_EQ(message.record.culprit, LEFT);
	mmc_op_fail(subject.op, MMC_ECANCELED, RIGHT, false);
	mmc_op_message(subject.op, MMC_MESSAGE_NAK, &message);
	CHECK_EQ(message.record.failure, MMC_ECANCELED);
	CHECK_EQ(message.record.culprit, RIGHT);
	subject_close(&subject);
}

/*
 * *Hearsay* is evidence of a late rank that another rank has sent. Each rank that passes
 * hearsay on adds at least a millisecond to its age, even if no time has passed.
 */
static void hearsay_grows_older(void)
{
	struct mmc_message hearsay = subject_message(MMC_MESSAGE_RECORD);
	static struct mmc_message message;
	static struct subject subject;

	hearsay.record.flags = NOT_ENTERED;
	hearsay.late_rank = LATE;
	for (uint32_t age_ms = 1; age_ms < 50; age_ms++) {
		subject_open(&subject, &subject_config);
		hearsay.late_age_ms = age_ms;
		subject_hear(&subject, RIGHT, &hearsay);
		for (uint64_t waited_us = 0; waited_us < 5000;
		     waited_us += 500) {
			mmc_op_message(subject.op, MMC_MESSAGE_RECORD,
				       &message);
			CHECK_EQ(message.late_rank, LATE);
			CHECK_EQ(message.late_age_ms,
				 age_ms + waited_us / 1000 + 1);
			subject.now_ns += 500 * MMC_US_NS;
			subject_run(&subject);
		}
		subject_close(&subject);
	}
}

/* Hearsay is no longer passed on once its age has reached TIMEOUT. */
static void old_hearsay_is_dropped(void)
{
	struct mmc_message hearsay = subject_message(MMC_MESSAGE_RECORD);
	static struct mmc_message message;
	static struct subject subject;

	hearsay.record.flags = NOT_ENTERED;
	hearsay.late_rank = LATE;
	hearsay.late_age_ms = 1;
	subject_open(&subject, &subject_config);
	subject_hear(&subject, RIGHT, &hearsay);
	mmc_liveness_observe(&subject.op->liveness,
			     subject.now_ns + subject_config.timeout_ns -
				     2 * MMC_MS_NS);
	mmc_op_message(subject.op, MMC_MESSAGE_RECORD, &message);
	CHECK_EQ(message.late_rank, LATE);
	mmc_liveness_observe(&subject.op->liveness,
			     subject.now_ns + subject_config.timeout_ns);
	mmc_op_message(subject.op, MMC_MESSAGE_RECORD, &message);
	CHECK_EQ(message.late_rank, MMC_PEER_NONE);
	CHECK_EQ(message.late_age_ms, 0);
	subject_close(&subject);
}

/*
 * A question has a stamp, the low 32 bits of the time in microseconds. The lowest bit is
 * always set, since a stamp of 0 would ask for no answer.
 */
static void questions_have_stamps(void)
{
	static const struct {
		uint64_t now_ns;
		uint32_t stamp_us;
	} rows[] = {
		{ 0, 1 },
		{ 1999, 1 },
		{ 2000, 3 },
		{ 3000, 3 },
		{ (UINT64_C(1) << 32) * MMC_US_NS, 1 },
		{ ((UINT64_C(1) << 32) + 8) * MMC_US_NS, 9 },
	};
	static struct mmc_actions actions;
	static struct subject subject;

	subject_open(&subject, &subject_config);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_ask_record(subject.op, RIGHT, rows[i].now_ns, &actions);
		decode_message(&subject, &actions);
		CHECK_EQ(subject.said[0].peer, RIGHT);
		CHECK_EQ(subject.said[0].message.kind, MMC_MESSAGE_RECORD);
		CHECK_EQ(subject.said[0].message.stamp_us, rows[i].stamp_us);
	}
	subject_close(&subject);
}

/* Each rank sends its memory advertisement to its right neighbour alone. */
static void the_advert_goes_to_the_right_neighbour(void)
{
	static const struct mmc_readable readable = {
		.data_address = 6,
		.state_key = 7,
		.data_key = 8,
	};
	struct mmc_op_config config = subject_config;
	static struct mmc_actions actions;
	static struct subject subject;
	const struct mmc_advert *advert = &subject.said[0].message.advert;

	config.repair = MMC_REPAIR_READ;
	config.read_bytes = 1000;
	config.generation = 5;
	for (config.rank = 0; config.rank < config.nranks; config.rank++) {
		subject_open(&subject, &config);
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_registered(subject.op, &readable);
		mmc_op_tell_advert(subject.op, &actions);
		decode_message(&subject, &actions);
		CHECK_EQ(subject.said[0].peer,
			 (config.rank + 1) % config.nranks);
		CHECK_EQ(subject.said[0].message.kind, MMC_MESSAGE_ADVERT);
		CHECK_EQ(subject.said[0].message.nitems, 1);
		CHECK_EQ(advert->generation, 5);
		CHECK_EQ(advert->data_address, 6);
		CHECK_EQ(advert->map_key, 7);
		CHECK_EQ(advert->data_key, 8);
		CHECK(advert->has_data);
		CHECK_EQ(subject.counters.value[MMC_COUNT_ADVERTS], 1);
		subject_close(&subject);
	}
}

CHECK_MAIN(CHECK_TEST(a_record_asks_for_no_answer),
	   CHECK_TEST(messages_name_the_culprit),
	   CHECK_TEST(hearsay_grows_older), CHECK_TEST(old_hearsay_is_dropped),
	   CHECK_TEST(questions_have_stamps),
	   CHECK_TEST(the_advert_goes_to_the_right_neighbour))
