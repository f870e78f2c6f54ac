/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operation under test, on one rank; the test plays the other ranks. The messages
 * and actions of one subject_run() are kept until the next.
 */
#ifndef MMC_TESTS_SUBJECT_H
#define MMC_TESTS_SUBJECT_H

#include "check.h"
#include "core/operation/op.h"
#include "support/memory.h"

#define SUBJECT_CHANNEL (UINT64_C(9) << 16)
#define SUBJECT_EPOCH 3
#define SUBJECT_SAID_MAX 64
#define SUBJECT_DONE_MAX 256

/* Four ranks with blocks of five chunks, whose windows hold everything. */
static const struct mmc_op_config subject_config = {
	.channel = SUBJECT_CHANNEL,
	.epoch = SUBJECT_EPOCH,
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
struct subject_said {
	uint32_t peer;
	struct mmc_message message;
};

struct subject {
	struct mmc_op *op;
	struct mmc_path path;
	struct mmc_counters counters;
	uint64_t now_ns;
	struct subject_said said[SUBJECT_SAID_MAX];
	unsigned nsaid;
	struct mmc_action done[SUBJECT_DONE_MAX]; /* all actions but messages */
	unsigned ndone;
};

/* Opens an operation on a path on which something was measured. */
static inline void subject_open_on(struct subject *subject,
				   const struct mmc_op_config *config,
				   const struct mmc_path *path)
{
	struct mmc_op_config own = *config;

	*subject = (struct subject){ .now_ns = MMC_S_NS, .path = *path };
	own.path = &subject->path;
	own.counters = &subject->counters;
	subject->op = mmc_op_init(aligned_alloc(MMC_ALIGN_BYTES,
						mmc_op_footprint(&own)),
				  &own, subject->now_ns);
}

static inline void subject_open(struct subject *subject,
				const struct mmc_op_config *config)
{
	struct mmc_path path;

	mmc_path_init(&path);
	subject_open_on(subject, config, &path);
}

static inline void subject_close(struct subject *subject)
{
	free(subject->op);
}

/* ---- what the operation does --------------------------------------------- */

/* Keeps a message, which must belong to this operation and be for other ranks. */
static inline void subject_keep(struct subject *subject,
				const struct mmc_actions *actions,
				const struct mmc_action *action)
{
	const struct mmc_op_config *config = &subject->op->config;
	struct subject_said *said = &subject->said[subject->nsaid];
	const uint8_t *bytes = actions->arena + action->offset;
	struct mmc_header header;

	if (!CHECK(subject->nsaid < SUBJECT_SAID_MAX))
		return;
	subject->nsaid++;
	CHECK(action->peer == MMC_PEER_ALL || action->peer < config->nranks);
	CHECK(action->peer != config->rank);
	said->peer = action->peer;
	CHECK_EQ(mmc_header_decode(&header, bytes, action->nbytes,
				   MMC_CHECKSUM_HEADER),
		 0);
	CHECK_EQ(header.channel, SUBJECT_CHANNEL);
	CHECK_EQ(header.epoch, SUBJECT_EPOCH);
	CHECK_EQ(mmc_message_decode(&said->message,
				    header.index & MMC_INDEX_MASK,
				    bytes + MMC_HEADER_BYTES,
				    action->nbytes - MMC_HEADER_BYTES),
		 0);
}

/* Records a batch of actions; what is to be sent leaves at once. */
static inline void subject_note(struct subject *subject,
				const struct mmc_actions *actions)
{
	for (uint32_t i = 0; i < actions->count; i++) {
		const struct mmc_action *action = &actions->items[i];

		if (action->kind == MMC_ACTION_CONTROL) {
			subject_keep(subject, actions, action);
			continue;
		}
		if (CHECK(subject->ndone < SUBJECT_DONE_MAX))
			subject->done[subject->ndone++] = *action;
		if (action->kind == MMC_ACTION_SEND ||
		    action->kind == MMC_ACTION_PARITY)
			mmc_op_on_sent(subject->op, action->run.count);
	}
}

/* Polls until the operation has no more actions for now. */
static inline void subject_run(struct subject *subject)
{
	static struct mmc_actions actions;
	unsigned nbatches = 0;

	subject->nsaid = 0;
	subject->ndone = 0;
	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_poll(subject->op, subject->now_ns, &actions);
		subject_note(subject, &actions);
	} while (actions.count > 0 && CHECK(nbatches++ < 1000));
}

/* Lets time pass until the next deadline, `limit_ns` at the latest; then polls. */
static inline void subject_run_next(struct subject *subject, uint64_t limit_ns)
{
	uint64_t at_ns = mmc_op_deadline(subject->op);

	CHECK(at_ns <= limit_ns);
	subject->now_ns = at_ns > subject->now_ns ? at_ns : subject->now_ns;
	subject_run(subject);
}

/* Returns the first message of `kind` to `peer` that was said, or NULL. */
static inline const struct mmc_message *
subject_find_said(const struct subject *subject, uint32_t peer,
		  enum mmc_message_kind kind)
{
	for (unsigned i = 0; i < subject->nsaid; i++)
		if (subject->said[i].peer == peer &&
		    subject->said[i].message.kind == kind)
			return &subject->said[i].message;
	return NULL;
}

/* Returns the first action of `kind` that was done, or NULL. */
static inline const struct mmc_action *
subject_find_done(const struct subject *subject, enum mmc_action_kind kind)
{
	for (unsigned i = 0; i < subject->ndone; i++)
		if (subject->done[i].kind == kind)
			return &subject->done[i];
	return NULL;
}

/* ---- what the other ranks do --------------------------------------------- */

/* Returns a message from a rank that knows that all have entered. */
static inline struct mmc_message subject_message(enum mmc_message_kind kind)
{
	return (struct mmc_message){
		.kind = kind,
		.late_rank = MMC_PEER_NONE,
		.record = {
			.flags = MMC_RECORD_ENTERED,
			.entry_rounds = MMC_ROUNDS_MAX,
			.culprit = MMC_PEER_NONE,
			.terms = { 7, 7, 60000, 60000, 100, 1, 0, 0 },
		},
	};
}

static inline void subject_hear(struct subject *subject, uint32_t source,
				const struct mmc_message *message)
{
	mmc_op_on_message(subject->op, source, message, subject->now_ns);
}

/* Lets all ranks enter, and runs until this one has sent its block. */
static inline void subject_begin(struct subject *subject)
{
	const struct mmc_message record = subject_message(MMC_MESSAGE_RECORD);

	for (uint32_t r = 0; r < subject->op->config.nranks; r++)
		if (r != subject->op->config.rank)
			subject_hear(subject, r, &record);
	subject_run(subject);
	CHECK(subject->op->state != MMC_OP_ENTRY);
}

/* Delivers a chunk by multicast, and places it if the operation accepts it. */
static inline enum mmc_verdict subject_deliver(struct subject *subject,
					       uint32_t chunk)
{
	const struct mmc_layout *layout = &subject->op->layout;
	enum mmc_verdict verdict = mmc_op_on_chunk(
		subject->op, mmc_layout_owner(layout, chunk), chunk,
		mmc_layout_payload(layout, chunk), subject->now_ns);

	if (verdict == MMC_VERDICT_PLACE)
		mmc_op_on_placed(subject->op, chunk);
	return verdict;
}

/* Delivers every chunk of the other ranks by multicast. */
static inline void subject_deliver_all(struct subject *subject)
{
	const struct mmc_layout *layout = &subject->op->layout;

	for (uint32_t c = 0; c < layout->nchunks; c++)
		if (mmc_layout_owner(layout, c) != subject->op->config.rank)
			CHECK_EQ(subject_deliver(subject, c),
				 MMC_VERDICT_PLACE);
}

/* Tells this rank that all others are done, and know that all ranks are done. */
static inline void subject_all_are_done(struct subject *subject)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);

	message.record.flags |= MMC_RECORD_DONE;
	message.record.release_rounds = MMC_ROUNDS_MAX;
	message.record.sent_chunks = subject->op->own.nchunks;
	for (uint32_t r = 0; r < subject->op->config.nranks; r++)
		if (r != subject->op->config.rank)
			subject_hear(subject, r, &message);
}

#endif
