/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a stream: the answers it gives, the early records it keeps, and the
 * operations it starts.
 */
#include "one_stream.h"

static const uint32_t lasts[] = { 0, 5, INT32_MAX, UINT32_MAX - 1, UINT32_MAX };

/* Questions about epochs without an operation are answered, even where epochs wrap. */
static void answers_about_any_epoch(void)
{
	static struct stream stream;

	for (unsigned i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		uint32_t last = lasts[i];

		stream_open(&stream, last);
		CHECK(ask(&stream, last, 3));
		CHECK_EQ(stream.said.record.flags,
			 MMC_RECORD_DONE | MMC_RECORD_CLOSED);
		CHECK(ask(&stream, last - 1000, 3));
		CHECK(stream.said.record.flags & MMC_RECORD_DONE);
		CHECK(ask(&stream, last + 1, 3));
		CHECK_EQ(stream.said.record.flags, 0);
		CHECK(ask(&stream, last + 1000, 3));
		CHECK_EQ(stream.said.record.flags, 0);
		start(&stream);
		CHECK(ask(&stream, last + 1, 5));
		CHECK_EQ(stream.said.record.flags, MMC_RECORD_ENTERED);
		stream_close(&stream);
	}
}

/* A rank that has left says so when asked for an epoch that it will never enter. */
static void tells_that_it_has_left(void)
{
	static struct stream stream;

	for (unsigned i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		uint32_t last = lasts[i];

		stream_open(&stream, last);
		start(&stream);
		/* One more operation has been started, and is queued. */
		mmc_epochs_leave(&stream.epochs, last + 2);
		CHECK(ask(&stream, last, 3));
		CHECK_EQ(stream.said.record.flags,
			 MMC_RECORD_DONE | MMC_RECORD_CLOSED);
		CHECK(ask(&stream, last + 1, 3));
		CHECK_EQ(stream.said.record.flags, MMC_RECORD_ENTERED);
		CHECK(ask(&stream, last + 2, 3));
		CHECK_EQ(stream.said.record.flags, 0);
		start(&stream);
		CHECK(ask(&stream, last + 2, 3));
		CHECK_EQ(stream.said.record.flags, MMC_RECORD_ENTERED);
		CHECK(ask(&stream, last + 3, 3));
		CHECK_EQ(stream.said.record.flags, MMC_RECORD_LEFT);
		stream_close(&stream);
	}
}

/* A rank that has not asked gets no answer. */
static void silent_unless_asked(void)
{
	static struct stream stream;
	const struct mmc_message message = {
		.record = { .flags = MMC_RECORD_ENTERED },
	};

	stream_open(&stream, 7);
	for (uint32_t epoch = 0; epoch < 20; epoch++)
		hear(&stream, 1, epoch, &message);
	poll(&stream);
	CHECK_EQ(stream.actions.count, 0);
	CHECK_EQ(mmc_epochs_deadline(&stream.epochs), MMC_NEVER_NS);
	stream_close(&stream);
}

/* However often a rank asks, it is owed one answer at a time. */
static void answers_are_bounded(void)
{
	static struct stream stream;
	const struct mmc_message question = { .stamp_us = 1 };
	uint32_t nanswers = 0;

	stream_open(&stream, 7);
	for (uint32_t i = 0; i < 1000; i++)
		hear(&stream, 1 + i % 2, i, &question);
	do {
		poll(&stream);
		nanswers += stream.actions.count;
	} while (stream.actions.count > 0);
	CHECK_EQ(nanswers, 2);
	stream_close(&stream);
}

/* Records that arrive before an operation starts count when it starts. */
static void early_records_are_kept(void)
{
	static struct stream stream;

	for (unsigned i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		struct mmc_message message = entered(2);
		struct mmc_op *op;

		stream_open(&stream, lasts[i]);
		for (uint32_t source = 1; source < NRANKS; source++) {
			struct mmc_message old = entered(0);

			hear(&stream, source, lasts[i] + 2, &message);
			hear(&stream, source, lasts[i] + 1, &message);
			hear(&stream, source, lasts[i] + 1, &old);
		}
		op = start(&stream);
		poll(&stream);
		CHECK(mmc_op_has_begun(op));
		op = start(&stream);
		poll(&stream);
		CHECK(mmc_op_has_begun(op));
		CHECK_EQ(stream.epochs.nearly, 0);
		stream_close(&stream);
	}
}

/* Records of past and of far future epochs take no room. */
static void early_records_are_bounded(void)
{
	static struct stream stream;
	struct mmc_message message = entered(0);

	stream_open(&stream, 100);
	for (uint32_t epoch = 0; epoch < 1000; epoch++)
		for (uint32_t source = 1; source < NRANKS; source++)
			hear(&stream, source, epoch, &message);
	CHECK_EQ(stream.epochs.nearly, (NRANKS - 1) * MMC_EPOCHS_ACTIVE_MAX);
	for (uint32_t i = 0; i < 1000; i++)
		hear(&stream, i, 101 + i % 4, &message);
	CHECK(stream.epochs.nearly <= MMC_EPOCHS_EARLY_MAX);
	stream_close(&stream);
}

/* A stream starts no more than MMC_EPOCHS_ACTIVE_MAX operations at a time. */
static void starts_are_bounded(void)
{
	static struct stream stream;

	for (unsigned i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		uint32_t nstarted = 0;

		stream_open(&stream, lasts[i]);
		while (mmc_epochs_ready(&stream.epochs) &&
		       CHECK(nstarted < 10)) {
			struct mmc_op *op = start(&stream);

			nstarted++;
			CHECK_EQ(op->config.epoch, lasts[i] + nstarted);
			CHECK_EQ(op->config.lag_epochs, nstarted);
			CHECK(mmc_epochs_find(&stream.epochs,
					      lasts[i] + nstarted) == op);
		}
		CHECK_EQ(nstarted, MMC_EPOCHS_ACTIVE_MAX);
		CHECK(mmc_epochs_find(&stream.epochs, lasts[i]) == NULL);
		CHECK(mmc_epochs_find(&stream.epochs, lasts[i] + 9) == NULL);
		stream_close(&stream);
	}
}

CHECK_MAIN(CHECK_TEST(answers_about_any_epoch), CHECK_TEST(silent_unless_asked),
	   CHECK_TEST(answers_are_bounded), CHECK_TEST(early_records_are_kept),
	   CHECK_TEST(early_records_are_bounded),
	   CHECK_TEST(starts_are_bounded), CHECK_TEST(tells_that_it_has_left))
