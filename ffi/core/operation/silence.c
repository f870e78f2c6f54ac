/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/silence.h"

#include "core/operation/tell.h"
#include "core/repair/silence.h"

/* After so many questions without an answer of the parent, the sender is asked. */
#define PARENT_QUESTIONS 2

/* ---- asking -------------------------------------------------------------- */

/* Returns whether to ask a silent sender itself, and not the parent about it. */
static bool asks_sender(const struct mmc_op *op,
			const struct mmc_sequence *sequence)
{
	return op->config.rank == 0 || sequence->nvain >= PARENT_QUESTIONS ||
	       sequence->rank == mmc_watermark_parent(op->config.rank);
}

void mmc_op_ask_silent(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	struct mmc_sequence *sequence;
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_SENT, &message);
	while (message.nitems < MMC_SENT_MAX &&
	       mmc_actions_room_for(actions, 2)) {
		sequence = mmc_silence_ask(&op->repair.loss, &op->claimed,
					   op->watermark.drained, now_ns);
		if (sequence == NULL)
			break;
		if (asks_sender(op, sequence))
			mmc_op_ask_record(op, sequence->rank, now_ns, actions);
		else
			message.sent[message.nitems++] = mmc_silence_known(
				&op->repair.loss, sequence->rank);
		sequence->nvain++;
	}
	if (message.nitems > 0)
		mmc_op_tell(op, mmc_watermark_parent(op->config.rank), &message,
			    actions);
}

/* ---- answering ----------------------------------------------------------- */

/* Returns how much `rank`, which may be this one, has sent, as far as is known here. */
static struct mmc_sent known(const struct mmc_op *op, uint32_t rank)
{
	if (rank == op->config.rank)
		return (struct mmc_sent){ .rank = rank,
					  .nchunks = op->record.sent_chunks };
	return mmc_silence_known(&op->repair.loss, rank);
}

static void answer_child(struct mmc_op *op, struct mmc_actions *actions)
{
	const struct mmc_op_question *question =
		&op->questions[--op->nquestions];
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_SENT, &message);
	message.nitems = question->nmissed;
	for (uint32_t i = 0; i < question->nmissed; i++)
		message.sent[i] = known(op, question->missed[i]);
	mmc_op_tell(op, question->child, &message, actions);
}

void mmc_op_tell_sent(struct mmc_op *op, struct mmc_actions *actions)
{
	while (op->nquestions > 0 && mmc_actions_room(actions))
		answer_child(op, actions);
	if (op->summoned && mmc_actions_room(actions)) {
		op->summoned = false;
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
	}
}

/* ---- hearing ------------------------------------------------------------- */

/*
 * Returns the place for a question of `child`, where its last one may still be; NULL if
 * there is no room.
 */
static struct mmc_op_question *place_for(struct mmc_op *op, uint32_t child)
{
	for (uint32_t i = 0; i < op->nquestions; i++)
		if (op->questions[i].child == child)
			return &op->questions[i];
	if (op->nquestions == MMC_WATERMARK_FAN_IN)
		return NULL;
	return &op->questions[op->nquestions++];
}

/*
 * Keeps the question of `child`, and asks further about the senders of which no more is
 * known here than there.
 */
static void hear_child(struct mmc_op *op, uint32_t child,
		       const struct mmc_message *message, uint64_t now_ns)
{
	struct mmc_op_question *question = place_for(op, child);

	if (question == NULL)
		return;
	question->child = child;
	question->nmissed = 0;
	for (uint32_t i = 0; i < message->nitems; i++) {
		struct mmc_sent sent = message->sent[i];

		if (sent.rank >= op->config.nranks)
			continue;
		question->missed[question->nmissed++] = sent.rank;
		if (op->state == MMC_OP_FLOW &&
		    known(op, sent.rank).nchunks <= sent.nchunks)
			mmc_silence_want(&op->repair.loss, sent.rank, now_ns);
	}
}

void mmc_op_hear_sent(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns)
{
	uint32_t rank = op->config.rank;

	/* Of carried blocks a rank asks for itself alone. */
	op->summoned |= source == 0 && message->stamp_us != 0 &&
			op->mode != MMC_OP_CARRIED;
	if (message->kind != MMC_MESSAGE_SENT)
		return;
	if (source != 0 && mmc_watermark_parent(source) == rank) {
		hear_child(op, source, message, now_ns);
		return;
	}
	if (rank == 0 || mmc_watermark_parent(rank) != source)
		return;
	for (uint32_t i = 0; i < message->nitems; i++) {
		struct mmc_sent sent = message->sent[i];

		if (sent.rank < op->config.nranks && sent.rank != rank)
			mmc_silence_vouch(&op->repair.loss, sent, now_ns);
	}
}
