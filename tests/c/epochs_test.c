/* SPDX-License-Identifier: BSD-3-Clause */
/* What one rank of a stream answers, keeps and starts; see also op_test.c. */
#include "check.h"
#include "core/operation/epochs.h"
#include "support/memory.h"

#define NRANKS 3
#define RANK 0

static const struct mmc_op_config config = {
	.signature = 7,
	.nranks = NRANKS,
	.block_bytes = 100,
	.chunk_bytes = 100,
	.window_bytes = 60000,
	.timeout_ns = 10 * MMC_S_NS,
};

struct stream {
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_actions actions;
	struct mmc_message said; /* what poll() found last */
	uint32_t said_epoch;
	void *memory[16];
	unsigned nmemory;
	uint64_t now_ns;
};

/* As if `last` epochs had come and gone. */
static void stream_open(struct stream *stream, uint32_t last)
{
	*stream = (struct stream){ .now_ns = MMC_S_NS };
	stream->epochs_memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_epochs_bytes(NRANKS));
	mmc_epochs_init(&stream->epochs, stream->epochs_memory,
			UINT64_C(9) << 16, RANK, NRANKS, &stream->counters);
	stream->epochs.last = last;
	stream->epochs.done = last;
}

static void stream_close(struct stream *stream)
{
	while (stream->nmemory > 0)
		free(stream->memory[--stream->nmemory]);
	free(stream->epochs_memory);
}

static struct mmc_op *start(struct stream *stream)
{
	void *memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_op_footprint(&config));

	stream->memory[stream->nmemory++] = memory;
	return mmc_epochs_start(&stream->epochs, memory, &config,
				stream->now_ns);
}

static void poll(struct stream *stream)
{
	mmc_actions_init(&stream->actions, MMC_CHECKSUM_OFF);
	mmc_epochs_poll(&stream->epochs, stream->now_ns, &stream->actions);
}

static void hear(struct stream *stream, uint32_t source, uint32_t epoch,
		 const struct mmc_message *message)
{
	mmc_epochs_on_message(&stream->epochs, source, epoch, message,
			      stream->now_ns);
}

/* Asks about an epoch as rank 1 would; returns whether an answer came. */
static bool ask(struct stream *stream, uint32_t epoch, uint32_t stamp_us)
{
	const struct mmc_message question = { .stamp_us = stamp_us };
	const struct mmc_actions *actions = &stream->actions;

	hear(stream, 1, epoch, &question);
	poll(stream);
	for (uint32_t i = 0; i < actions->count; i++) {
		const struct mmc_action *action = &actions->items[i];
		const uint8_t *bytes = actions->arena + action->offset;
		struct mmc_header header;

		if (action->kind != MMC_ACTION_CONTROL || action->peer != 1)
			continue;
		CHECK_EQ(mmc_header_decode(&header, bytes, action->nbytes,
					   MMC_CHECKSUM_OFF),
			 0);
		CHECK_EQ(mmc_message_decode(&stream->said,
					    header.index & MMC_INDEX_MASK,
					    bytes + MMC_HEADER_BYTES,
					    action->nbytes - MMC_HEADER_BYTES),
			 0);
		if (header.epoch == epoch && stream->said.echo_us == stamp_us)
			return true;
	}
	return false;
}

static const uint32_t lasts[] = { 0, 5, INT32_MAX, UINT32_MAX - 1, UINT32_MAX };

/* One word tells of every epoch that has no operation, also past 2^32. */
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

/* Whoever asks for an epoch that will never be entered here learns that. */
static void tells_that_it_has_left(void)
{
	static struct stream stream;

	for (unsigned i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		uint32_t last = lasts[i];

		stream_open(&stream, last);
		start(&stream);
		/* One more has been started, and waits for its turn. */
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

/* Nobody is answered who has not asked. */
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

/* However often a rank asks, it has one answer at a time. */
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

static struct mmc_message entered(uint32_t entry_rounds)
{
	return (struct mmc_message){
		.record = {
			.flags = MMC_RECORD_ENTERED,
			.entry_rounds = (uint8_t)entry_rounds,
			.terms = { 7, 7, 60000, 60000, 100, 1 },
		},
	};
}

/* What others said before an operation started counts when it starts. */
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
		CHECK(mmc_op_entered_by_all(op));
		op = start(&stream);
		poll(&stream);
		CHECK(mmc_op_entered_by_all(op));
		CHECK_EQ(stream.epochs.nearly, 0);
		stream_close(&stream);
	}
}

/* Neither the past nor the far future takes room. */
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

static unsigned count_actions(const struct stream *stream,
			      enum mmc_action_kind kind)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < stream->actions.count; i++)
		n += stream->actions.items[i].kind == kind;
	return n;
}

/* A failure of one operation is one of all, and the first stays the first. */
static void poisoned(void)
{
	static struct stream stream;
	const struct mmc_poison poison = { MMC_ECANCELED, 8, RANK };
	const struct mmc_poison second = { MMC_ENOANSWER, 9, 2 };

	stream_open(&stream, 7);
	start(&stream);
	start(&stream);
	mmc_epochs_poison(&stream.epochs, poison, true);
	mmc_epochs_poison(&stream.epochs, second, true);
	CHECK(!mmc_epochs_ready(&stream.epochs));
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 2);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_CLOSED), 2);
	CHECK(count_actions(&stream, MMC_ACTION_CONTROL) >= 6);
	CHECK_EQ(stream.epochs.done, 9);
	for (uint32_t epoch = 5; epoch < 20; epoch++) {
		CHECK(ask(&stream, epoch, 3));
		CHECK(stream.said.record.flags & MMC_RECORD_FAILED);
		CHECK_EQ(stream.said.record.failure, MMC_ECANCELED);
		CHECK_EQ(stream.said.record.culprit, RANK);
	}
	stream_close(&stream);
}

/* What another rank's failure hits here is answered with that failure too. */
static void failed_with_a_later_epoch(void)
{
	static struct stream stream;
	const struct mmc_message failed = {
		.record = { .flags = MMC_RECORD_FAILED,
			    .failure = MMC_ENOANSWER,
			    .culprit = 2 },
	};

	stream_open(&stream, 7);
	start(&stream);
	start(&stream);
	hear(&stream, 1, 9, &failed);
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 2);
	for (uint32_t epoch = 8; epoch <= 9; epoch++) {
		CHECK(ask(&stream, epoch, 3));
		CHECK(stream.said.record.flags & MMC_RECORD_FAILED);
	}
	stream_close(&stream);
}

/* The first action of a kind, or the number of actions. */
static uint32_t find_action(const struct stream *stream,
			    enum mmc_action_kind kind)
{
	const struct mmc_actions *actions = &stream->actions;
	uint32_t i = 0;

	while (i < actions->count && actions->items[i].kind != kind)
		i++;
	return i;
}

/*
 * Who finds at the barrier that ranks disagree tells all before its user, who may
 * then close the stream, and what they disagree about also those who ask late.
 */
static void disagreed(void)
{
	static struct stream stream;
	const struct mmc_message entered = {
		.record = { .flags = MMC_RECORD_ENTERED,
			    .entry_rounds = MMC_ROUNDS_MAX,
			    .terms = { .signature_min = 5,
				       .signature_max = 9 } },
	};
	uint32_t nalarms = 0;

	stream_open(&stream, 7);
	start(&stream);
	for (uint32_t source = 1; source < NRANKS; source++)
		hear(&stream, source, 8, &entered);
	poll(&stream);
	for (uint32_t i = 0; i < find_action(&stream, MMC_ACTION_FAILED); i++)
		nalarms += stream.actions.items[i].peer == MMC_PEER_ALL;
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 1);
	CHECK_EQ(nalarms, 3);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_CLOSED), 1);
	CHECK(ask(&stream, 8, 3));
	CHECK_EQ(stream.said.record.flags,
		 MMC_RECORD_ENTERED | MMC_RECORD_FAILED);
	CHECK_EQ(stream.said.record.terms.signature_min, 5);
	CHECK_EQ(stream.said.record.terms.signature_max, 9);
	stream_close(&stream);
}

static const struct mmc_message has_left = {
	.record = { .flags = MMC_RECORD_LEFT, .culprit = MMC_PEER_ALL },
};

/* A rank that has left fails what waits for it, on all ranks, and that alone. */
static void waits_for_nobody_who_has_left(void)
{
	static struct stream stream;

	stream_open(&stream, 7);
	hear(&stream, 1, 8, &has_left);
	start(&stream);
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 0);
	hear(&stream, 1, 9, &has_left);
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 0);
	hear(&stream, 1, 8, &has_left);
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 1);
	CHECK_EQ(stream.epochs.poison.error, MMC_ELEFT);
	CHECK_EQ(stream.epochs.poison.culprit, 1);
	CHECK(ask(&stream, 8, 3));
	CHECK_EQ(stream.said.record.failure, MMC_ELEFT);
	stream_close(&stream);
}

/* What all have entered cannot fail because a rank leaves afterwards. */
static void has_been_entered_by_all(void)
{
	static struct stream stream;
	const struct mmc_message entered = {
		.record = { .flags = MMC_RECORD_ENTERED,
			    .entry_rounds = MMC_ROUNDS_MAX,
			    .culprit = MMC_PEER_ALL,
			    .terms = { .signature_min = 7,
				       .signature_max = 7,
				       .window_bytes = 60000 } },
	};

	stream_open(&stream, 7);
	start(&stream);
	for (uint32_t source = 1; source < NRANKS; source++)
		hear(&stream, source, 8, &entered);
	poll(&stream);
	hear(&stream, 1, 8, &has_left);
	poll(&stream);
	CHECK_EQ(count_actions(&stream, MMC_ACTION_FAILED), 0);
	CHECK_EQ(stream.epochs.poison.error, MMC_OK);
	stream_close(&stream);
}

/* Who is awaited first has not entered, and others are told of that rank. */
static void tells_who_is_late(void)
{
	static struct stream stream;
	const struct mmc_message entered = {
		.record = { .flags = MMC_RECORD_ENTERED,
			    .culprit = MMC_PEER_ALL },
	};

	stream_open(&stream, 7);
	start(&stream);
	CHECK(ask(&stream, 8, 3));
	CHECK_EQ(stream.said.record.culprit, 2);
	hear(&stream, 2, 8, &entered);
	CHECK(ask(&stream, 8, 3));
	CHECK_EQ(stream.said.record.culprit, 1);
	stream_close(&stream);
}

/* Does an operation whose chunks all come as repairs, none by multicast. */
static void gather_by_repairs(struct stream *stream)
{
	const struct mmc_message all_entered = entered(2);
	struct mmc_op_config eager = config;
	void *memory;
	struct mmc_op *op;

	eager.eager_bytes = NRANKS * config.block_bytes;
	memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_op_footprint(&eager));
	stream->memory[stream->nmemory++] = memory;
	op = mmc_epochs_start(&stream->epochs, memory, &eager, stream->now_ns);
	hear(stream, 1, op->config.epoch, &all_entered);
	hear(stream, 2, op->config.epoch, &all_entered);
	poll(stream);
	poll(stream);
	mmc_op_on_sent(op, op->nsending);
	for (uint32_t r = 0; r < NRANKS; r++)
		if (r != RANK) {
			CHECK_EQ(mmc_op_on_chunk(op, r, r | MMC_INDEX_REPAIR,
						 config.block_bytes,
						 stream->now_ns),
				 MMC_VERDICT_PLACE);
			mmc_op_on_placed(op, r);
		}
	poll(stream);
	CHECK(op->record.flags & MMC_RECORD_DONE);
}

/* Others may be in a stream's first operation before it is open here. */
static void the_first_operation_proves_no_silence(void)
{
	static struct stream stream;

	stream_open(&stream, 0);
	gather_by_repairs(&stream);
	CHECK_EQ(stream.epochs.path.silent_chunks, 0);
	gather_by_repairs(&stream);
	CHECK_EQ(stream.epochs.path.silent_chunks, NRANKS - 1);
	stream_close(&stream);
}

CHECK_MAIN(CHECK_TEST(the_first_operation_proves_no_silence),
	   CHECK_TEST(answers_about_any_epoch), CHECK_TEST(silent_unless_asked),
	   CHECK_TEST(answers_are_bounded), CHECK_TEST(early_records_are_kept),
	   CHECK_TEST(early_records_are_bounded),
	   CHECK_TEST(starts_are_bounded), CHECK_TEST(poisoned),
	   CHECK_TEST(failed_with_a_later_epoch), CHECK_TEST(disagreed),
	   CHECK_TEST(tells_that_it_has_left),
	   CHECK_TEST(waits_for_nobody_who_has_left),
	   CHECK_TEST(has_been_entered_by_all), CHECK_TEST(tells_who_is_late))
