/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation of one rank; the test plays the other ranks. The messages and
 * actions of a run are kept until the next run.
 */
#ifndef MMC_TESTS_ONE_OPERATION_H
#define MMC_TESTS_ONE_OPERATION_H

#include "check.h"
#include "core/operation/op.h"
#include "support/memory.h"

#define ONE_CHANNEL (UINT64_C(9) << 16)
#define ONE_EPOCH 3
#define ONE_SAID_MAX 64
#define ONE_DONE_MAX 256

/* Four ranks with blocks of five chunks, whose windows hold everything. */
static const struct mmc_op_config one_config = {
	.channel = ONE_CHANNEL,
	.epoch = ONE_EPOCH,
	.rank = 1,
	.nranks = 4,
	.signature = 7,
	.block_bytes = 500,
	.chunk_bytes = 100,
	.window_bytes = 60000,
	.source_bytes = 60000,
	.lag_epochs = 1,
	.timeout_ns = 10 * MMC_S_NS,
	.seed = 1,
};

/* A control message that the operation has sent. */
struct one_said {
	uint32_t peer;
	struct mmc_message message;
};

struct one {
	struct mmc_op *op;
	struct mmc_path path;
	struct mmc_counters counters;
	uint64_t now_ns;
	struct one_said said[ONE_SAID_MAX];
	unsigned nsaid;
	struct mmc_action done[ONE_DONE_MAX]; /* all actions but messages */
	unsigned ndone;
};

static inline void one_open(struct one *one, const struct mmc_op_config *config)
{
	struct mmc_op_config own = *config;

	*one = (struct one){ .now_ns = MMC_S_NS };
	mmc_path_init(&one->path);
	own.path = &one->path;
	own.counters = &one->counters;
	one->op = mmc_op_init(aligned_alloc(MMC_ALIGN_BYTES,
					    mmc_op_footprint(&own)),
			      &own, one->now_ns);
}

static inline void one_close(struct one *one)
{
	free(one->op);
}

/* ---- what the operation does --------------------------------------------- */

/* Keeps a message, which must be for other ranks and of this operation. */
static inline void one_keep(struct one *one, const struct mmc_actions *actions,
			    const struct mmc_action *action)
{
	const struct mmc_op_config *config = &one->op->config;
	struct one_said *said = &one->said[one->nsaid];
	const uint8_t *bytes = actions->arena + action->offset;
	struct mmc_header header;

	if (!CHECK(one->nsaid < ONE_SAID_MAX))
		return;
	one->nsaid++;
	CHECK(action->peer == MMC_PEER_ALL || action->peer < config->nranks);
	CHECK(action->peer != config->rank);
	said->peer = action->peer;
	CHECK_EQ(mmc_header_decode(&header, bytes, action->nbytes,
				   MMC_CHECKSUM_HEADER),
		 0);
	CHECK_EQ(header.channel, ONE_CHANNEL);
	CHECK_EQ(header.epoch, ONE_EPOCH);
	CHECK_EQ(mmc_message_decode(&said->message,
				    header.index & MMC_INDEX_MASK,
				    bytes + MMC_HEADER_BYTES,
				    action->nbytes - MMC_HEADER_BYTES),
		 0);
}

/* Records a batch of actions; chunks that are to be sent leave at once. */
static inline void one_note(struct one *one, const struct mmc_actions *actions)
{
	for (uint32_t i = 0; i < actions->count; i++) {
		const struct mmc_action *action = &actions->items[i];

		if (action->kind == MMC_ACTION_CONTROL) {
			one_keep(one, actions, action);
			continue;
		}
		if (CHECK(one->ndone < ONE_DONE_MAX))
			one->done[one->ndone++] = *action;
		if (action->kind == MMC_ACTION_SEND)
			mmc_op_on_sent(one->op, action->run.count);
	}
}

/* Polls until the operation has no more actions for now. */
static inline void one_run(struct one *one)
{
	static struct mmc_actions actions;
	unsigned nbatches = 0;

	one->nsaid = 0;
	one->ndone = 0;
	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_poll(one->op, one->now_ns, &actions);
		one_note(one, &actions);
	} while (actions.count > 0 && CHECK(nbatches++ < 1000));
}

/* Lets time pass up to the next deadline, at most `limit_ns`; then polls. */
static inline void one_run_next(struct one *one, uint64_t limit_ns)
{
	uint64_t at_ns = mmc_op_deadline(one->op);

	CHECK(at_ns <= limit_ns);
	one->now_ns = at_ns > one->now_ns ? at_ns : one->now_ns;
	one_run(one);
}

/* Returns the first message of `kind` to `peer` that was said, or NULL. */
static inline const struct mmc_message *
one_find_said(const struct one *one, uint32_t peer, enum mmc_message_kind kind)
{
	for (unsigned i = 0; i < one->nsaid; i++)
		if (one->said[i].peer == peer &&
		    one->said[i].message.kind == kind)
			return &one->said[i].message;
	return NULL;
}

/* Returns the first action of `kind` that was done, or NULL. */
static inline const struct mmc_action *one_find_done(const struct one *one,
						     enum mmc_action_kind kind)
{
	for (unsigned i = 0; i < one->ndone; i++)
		if (one->done[i].kind == kind)
			return &one->done[i];
	return NULL;
}

/* ---- what the other ranks do --------------------------------------------- */

/* Returns a message of a rank that knows that all have entered. */
static inline struct mmc_message one_message(enum mmc_message_kind kind)
{
	return (struct mmc_message){
		.kind = kind,
		.late_rank = MMC_PEER_NONE,
		.record = {
			.flags = MMC_RECORD_ENTERED,
			.entry_rounds = MMC_ROUNDS_MAX,
			.culprit = MMC_PEER_NONE,
			.terms = { 7, 7, 60000, 60000, 100, 1, 0 },
		},
	};
}

static inline void one_hear(struct one *one, uint32_t source,
			    const struct mmc_message *message)
{
	mmc_op_on_message(one->op, source, message, one->now_ns);
}

/* Lets all ranks enter, and runs until this one has sent its block. */
static inline void one_begin(struct one *one)
{
	const struct mmc_message record = one_message(MMC_MESSAGE_RECORD);

	for (uint32_t r = 0; r < one->op->config.nranks; r++)
		if (r != one->op->config.rank)
			one_hear(one, r, &record);
	one_run(one);
	CHECK(one->op->state != MMC_OP_ENTRY);
}

/* Delivers a chunk by multicast, and places it if the operation accepts it. */
static inline enum mmc_verdict one_bring(struct one *one, uint32_t chunk)
{
	const struct mmc_layout *layout = &one->op->layout;
	enum mmc_verdict verdict =
		mmc_op_on_chunk(one->op, mmc_layout_owner(layout, chunk), chunk,
				mmc_layout_payload(layout, chunk), one->now_ns);

	if (verdict == MMC_VERDICT_PLACE)
		mmc_op_on_placed(one->op, chunk);
	return verdict;
}

/* Delivers every chunk of the other ranks by multicast. */
static inline void one_bring_all(struct one *one)
{
	const struct mmc_layout *layout = &one->op->layout;

	for (uint32_t c = 0; c < layout->nchunks; c++)
		if (mmc_layout_owner(layout, c) != one->op->config.rank)
			CHECK_EQ(one_bring(one, c), MMC_VERDICT_PLACE);
}

/* Tells this rank that all others are done, and know that all ranks are. */
static inline void one_all_are_done(struct one *one)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);

	message.record.flags |= MMC_RECORD_DONE;
	message.record.release_rounds = MMC_ROUNDS_MAX;
	message.record.sent_chunks = one->op->own.nchunks;
	for (uint32_t r = 0; r < one->op->config.nranks; r++)
		if (r != one->op->config.rank)
			one_hear(one, r, &message);
}

#endif
