/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream fails on all ranks, even if some of them have left or are late. */
#include "one_stream.h"

static unsigned count_actions(const struct stream *stream,
			      enum mmc_action_kind kind)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < stream->actions.count; i++)
		n += stream->actions.items[i].kind == kind;
	return n;
}

/* A failure of one operation fails all open ones, and the first failure remains. */
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

/* A failure in a later epoch fails the earlier ones, and answers report it. */
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

/* Returns the index of the first action of a kind, or the number of actions. */
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
 * A rank that finds at the barrier that ranks disagree tells all others before its
 * user, who may then close the stream. Ranks that ask late learn what differs.
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
	.record = { .flags = MMC_RECORD_LEFT, .culprit = MMC_PEER_NONE },
};

/*
 * When a rank has left, the operation that awaits it fails on all ranks; no other does.
 */
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

/* An operation that all have entered does not fail because a rank leaves afterwards. */
static void has_been_entered_by_all(void)
{
	static struct stream stream;
	const struct mmc_message entered = {
		.record = { .flags = MMC_RECORD_ENTERED,
			    .entry_rounds = MMC_ROUNDS_MAX,
			    .culprit = MMC_PEER_NONE,
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

/* A record names a rank that has not entered, the awaited one first. */
static void tells_who_is_late(void)
{
	static struct stream stream;
	const struct mmc_message entered = {
		.record = { .flags = MMC_RECORD_ENTERED,
			    .culprit = MMC_PEER_NONE },
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

/* Runs an operation whose chunks all arrive as repairs, none by multicast. */
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

/*
 * A stream's first operation does not prove that multicast is silent: other ranks may
 * have sent before the stream was open on this rank.
 */
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

/* Returns whether the stream takes a failure of `culprit` in `epoch`. */
static bool allows(const struct stream *stream, uint32_t epoch,
		   uint32_t culprit)
{
	const struct mmc_message failed = {
		.record = { .flags = MMC_RECORD_FAILED,
			    .failure = MMC_ENOANSWER,
			    .culprit = culprit },
	};

	return mmc_epochs_allow(&stream->epochs, epoch, &failed);
}

/* A failure is of an epoch in which ranks may be, and of a rank or of none. */
static void only_possible_failures(void)
{
	static struct stream stream;

	for (uint32_t last = 100; last != 1; last = last == 100 ? 0 : 1) {
		stream_open(&stream, last);
		CHECK(allows(&stream, last, 0));
		CHECK(allows(&stream, last + MMC_EPOCHS_ACTIVE_MAX, 0));
		CHECK(allows(&stream, last + MMC_EPOCHS_AHEAD_MAX, 0));
		CHECK(!allows(&stream, last + MMC_EPOCHS_AHEAD_MAX + 1, 0));
		CHECK(allows(&stream, last - MMC_EPOCHS_OPEN_MAX, 0));
		CHECK(allows(&stream, last - MMC_EPOCHS_BEHIND_MAX, 0));
		CHECK(!allows(&stream, last - MMC_EPOCHS_BEHIND_MAX - 1, 0));
		CHECK(!allows(&stream, last + (UINT32_C(1) << 31), 0));
		CHECK(allows(&stream, last, NRANKS - 1));
		CHECK(allows(&stream, last, MMC_PEER_NONE));
		CHECK(!allows(&stream, last, NRANKS));
		CHECK(!allows(&stream, last, MMC_PEER_NONE - 1));
		stream_close(&stream);
	}
}

CHECK_MAIN(CHECK_TEST(only_possible_failures),
	   CHECK_TEST(the_first_operation_proves_no_silence),
	   CHECK_TEST(poisoned), CHECK_TEST(failed_with_a_later_epoch),
	   CHECK_TEST(disagreed), CHECK_TEST(waits_for_nobody_who_has_left),
	   CHECK_TEST(has_been_entered_by_all), CHECK_TEST(tells_who_is_late))
