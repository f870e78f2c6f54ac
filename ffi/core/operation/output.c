/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of op.h that polls: what is to be done, and when to poll again.
 */
#include "core/operation/begin.h"
#include "core/operation/carried.h"
#include "core/operation/due.h"
#include "core/operation/learn.h"
#include "core/operation/liveness.h"
#include "core/operation/parity.h"
#include "core/operation/repair.h"
#include "core/operation/silence.h"
#include "core/operation/tell.h"
#include "support/assert.h"
#include "support/bits.h"

/*
 * How many epochs an eager operation may run ahead of the last one that all have done.
 */
#define EAGER_EPOCHS_MAX 2

/* ---- control messages --------------------------------------------------- */

/* Multicasts the failure, several times. */
static void poll_alarms(struct mmc_op *op, struct mmc_actions *actions)
{
	for (; op->alarms > 0 && mmc_actions_room(actions); op->alarms--)
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
}

/*
 * Tells `peer` that this rank has entered, with the blocks that it needs; otherwise the
 * right neighbour by an advert.
 */
static void tell_entered(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	if (op->mode != MMC_OP_CARRIED &&
	    mmc_repair_advertises_to(&op->repair, peer))
		mmc_op_tell_advert(op, actions);
	else
		mmc_op_answer(op, &(struct mmc_answer){ .peer = peer }, now_ns,
			      actions);
}

/*
 * Tells the partners of `barrier` that are due, and asks the awaited one. A rank that
 * has ended for its user asks only once whenever it is asked itself.
 */
static void poll_barrier(struct mmc_op *op, struct mmc_barrier *barrier,
			 uint64_t now_ns, struct mmc_actions *actions)
{
	uint32_t peer;

	while (mmc_actions_room(actions) && mmc_barrier_next(barrier, &peer)) {
		if (barrier == &op->entry)
			tell_entered(op, peer, now_ns, actions);
		else
			mmc_op_tell_record(op, peer, actions);
		mmc_op_tell_again(op, peer, actions);
	}
	if (mmc_barrier_passed(barrier))
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) && mmc_op_ask_due(op, now_ns)) {
		mmc_op_ask_record(op, mmc_barrier_awaited(barrier), now_ns,
				  actions);
		if (op->state == MMC_OP_HELPING)
			mmc_backoff_stop(&op->asking);
	}
}

/* Multicasts chunks of this rank's block; `run` counts from the first of the block. */
static void send_original(struct mmc_op *op, struct mmc_run run,
			  struct mmc_actions *actions)
{
	run.first += op->own.first;
	mmc_op_send_run(op, MMC_PEER_ALL, run, false, actions);
	op->record.sent_chunks += run.count;
}

/* Sends the block of an eager operation, unless that would run too far ahead. */
static void poll_eager(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_run block = { .first = 0, .count = op->own.nchunks };

	if (op->mode != MMC_OP_EAGER || block.count == 0 ||
	    op->record.sent_chunks > 0 ||
	    op->config.lag_epochs > EAGER_EPOCHS_MAX ||
	    !mmc_actions_room(actions))
		return;
	send_original(op, block, actions);
}

/* Multicasts the block of a Bcast along with the root's record. */
static void poll_hub(struct mmc_op *op, uint64_t now_ns,
		     struct mmc_actions *actions)
{
	if (op->entry.hub != op->config.rank || op->record.sent_chunks > 0 ||
	    !mmc_actions_room(actions))
		return;
	mmc_op_answer(op, &(struct mmc_answer){ .peer = MMC_PEER_ALL }, now_ns,
		      actions);
	op->record.sent_chunks = op->own.nchunks;
}

/*
 * Returns whether the flow may begin: all have entered, as far as the operation waits
 * for that, and know it of this rank. Where a Bcast may do without a whole barrier, a
 * rank that has started something else waits for a barrier in vain.
 */
static bool has_entered(const struct mmc_op *op)
{
	if (!mmc_op_is_agreed(op) && op->config.may_be_bare)
		return true;
	return mmc_barrier_passed(&op->entry) &&
	       op->entry.told == op->entry.nrounds &&
	       (op->entry.hub != op->config.rank || op->record.sent_chunks > 0);
}

/* Sends a report to the parent or, on the root, the watermark to all, if one is due. */
static void poll_watermark(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;
	uint32_t peer;

	mmc_op_message(op, MMC_MESSAGE_REPORT, &message);
	if (!mmc_actions_room(actions) ||
	    !mmc_watermark_take_report(&op->watermark, message.positions,
				       &peer))
		return;
	if (peer == MMC_PEER_ALL)
		message.kind = MMC_MESSAGE_WATERMARK;
	message.nitems = op->watermark.nchains;
	mmc_op_tell(op, peer, &message, actions);
}

/* Asks the awaited rank whether it is alive, but only when nothing new arrives. */
static void poll_awaited(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	uint32_t peer;

	if (!mmc_actions_room(actions) || !mmc_op_ask_due(op, now_ns) ||
	    op->liveness.stalled_ns < MMC_BACKOFF_MAX_NS)
		return;
	peer = mmc_op_awaited(op);
	if (peer != MMC_PEER_ALL)
		mmc_op_ask_record(op, peer, now_ns, actions);
}

/* Says how much this rank has sent, or asks the predecessor, if that is due. */
static void poll_words(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	if (mmc_actions_room(actions) && mmc_turn_take_probe(&op->turn, now_ns))
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
	if (mmc_actions_room(actions) &&
	    mmc_turn_take_question(&op->turn, &op->repair.loss, &op->watermark,
				   op->config.path, now_ns))
		mmc_op_ask_record(op, op->turn.predecessor, now_ns, actions);
}

/* Sends a batch of this rank's block, if it may. Returns whether it did. */
static bool send_batch(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	const struct mmc_chain *chain = &op->repair.loss.chains[op->turn.chain];
	struct mmc_run run;

	if (!mmc_turn_next(&op->turn, &op->repair.loss, &op->watermark,
			   op->config.path, now_ns, &run))
		return false;
	mmc_loss_sent(&op->repair.loss, &op->claimed, &op->own, run, now_ns);
	send_original(op, run, actions);
	mmc_watermark_drain(&op->watermark, op->turn.chain, chain->ndrained);
	return true;
}

/* Counts the last chunk of a span as sent once its parity is: rarely, so it is cold. */
__attribute__((noinline, cold)) static void count_parity(struct mmc_op *op)
{
	op->record.sent_chunks = op->turn.next - mmc_op_owes_parity(op);
	op->sends = !mmc_op_has_sent_all(op);
}

/*
 * Sends a batch of this rank's block, or of its parity, if it may. It is only one, so that
 * what arrives meanwhile is received in between.
 */
bool mmc_op_poll_turn(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	if (!mmc_actions_room(actions))
		return false;
	if (mmc_op_owes_parity(op)) {
		mmc_op_send_parity(op, actions);
	} else if (!send_batch(op, now_ns, actions)) {
		op->sends = false;
		mmc_op_wake(op);
		return false;
	}
	op->sends = !mmc_turn_ended(&op->turn);
	if (mmc_op_may_be_coded(&op->config))
		count_parity(op);
	mmc_op_mark_advanced(op, now_ns);
	mmc_op_wake_if_stirred(op);
	/* Otherwise only silence would show that the last chunk was lost. */
	if (op->config.path->nlossy > 0 && !op->sends &&
	    mmc_actions_room(actions))
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
	return true;
}

/*
 * Returns whether nothing in flight refers to the user's buffers. Reads do not: what
 * they bring lies elsewhere until it is placed.
 */
static bool is_quiescent(const struct mmc_op *op)
{
	return op->nplacing == 0 && op->nsending == 0;
}

/* Returns the event of completion, by whether copies will serve repairs. */
static enum mmc_op_event completion(const struct mmc_op *op)
{
	uint64_t retain_bytes = op->config.retain_bytes;

	if (op->mode == MMC_OP_CARRIED)
		return MMC_OP_COMPLETE_WITH_COPY;
	if (op->repair.policy->release == MMC_RELEASE_RIGHT ||
	    op->own.nbytes > retain_bytes)
		return MMC_OP_COMPLETE;
	return op->layout.largest_bytes > retain_bytes
		       ? MMC_OP_COMPLETE_AHEAD
		       : MMC_OP_COMPLETE_WITH_COPY;
}

/* Completes the flow if all chunks are present and sent, and nothing is in flight. */
static void check_complete(struct mmc_op *op, uint64_t now_ns)
{
	if (op->npresent < op->layout.nchunks || !mmc_op_has_sent_all(op) ||
	    !is_quiescent(op) || op->repair.fetcher.nreading > 0)
		return;
	mmc_op_learn(op, now_ns);
	op->record.flags |= MMC_RECORD_DONE;
	mmc_op_step(op, completion(op));
	mmc_barrier_join(&op->release);
	mmc_op_mark_advanced(op, now_ns);
	if (mmc_op_has_copy(op))
		mmc_backoff_stop(&op->asking);
	else
		mmc_op_ask_soon(op, now_ns);
}

/* Tells and asks until the operation may give the buffers back, by the policy. */
static void poll_release(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	if (op->repair.policy->release == MMC_RELEASE_ALL) {
		poll_barrier(op, &op->release, now_ns, actions);
		if (mmc_barrier_passed(&op->release) && is_quiescent(op))
			mmc_op_step(op, MMC_OP_ALL_DONE);
		return;
	}
	if (op->config.nranks == 1) {
		op->left_told = true;
		op->right_done = true;
	}
	if (!op->left_told && mmc_actions_room(actions)) {
		mmc_op_tell_record(op, mmc_op_left(op), actions);
		mmc_op_tell_again(op, mmc_op_left(op), actions);
		op->left_told = true;
	}
	if (op->right_done && op->left_told && is_quiescent(op) &&
	    !mmc_repairer_owes(&op->repair.repairer))
		mmc_op_step(op, MMC_OP_RIGHT_DONE);
	else if (op->right_done)
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) && mmc_op_ask_due(op, now_ns))
		mmc_op_ask_record(op, mmc_op_right(op), now_ns, actions);
}

/* Hands the user's buffers back, and later the operation's memory. */
static void hand_back(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	bool failed = op->state >= MMC_OP_FAILED;
	struct mmc_action *action;

	if (op->state <= MMC_OP_RELEASE || !is_quiescent(op))
		return;
	/*
	 * Other ranks are told of a failure first: the user may close the stream then.
	 */
	if (!mmc_op_is_reported(op) && op->alarms == 0 &&
	    mmc_actions_room(actions)) {
		mmc_op_close_advert(op);
		action = mmc_actions_add(
			actions, failed ? MMC_ACTION_FAILED : MMC_ACTION_DONE,
			op);
		action->retain = mmc_op_has_copy(op);
		op->holding = MMC_OP_MEMORY;
		mmc_count(op->config.counters, MMC_COUNT_RELEASE_NS,
			  now_ns - op->stage_ns);
	}
	if (op->state >= MMC_OP_CLOSED && op->holding == MMC_OP_MEMORY &&
	    mmc_actions_room(actions)) {
		if (mmc_path_is_long(op->config.path))
			mmc_op_learn_last(op);
		mmc_actions_add(actions, MMC_ACTION_CLOSED, op);
		op->holding = MMC_OP_NOTHING;
	}
}

/* Returns whether this rank still holds what others may ask it for. */
static bool serves(const struct mmc_op *op)
{
	return op->state == MMC_OP_FLOW || op->state == MMC_OP_RELEASE ||
	       mmc_op_has_copy(op);
}

/* Polls all that brings chunks here, and that lets this rank send. */
static void poll_flow(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	if (mmc_op_is_coded(op))
		mmc_op_poll_mends(op, now_ns, actions);
	if (op->watermark.moved)
		poll_watermark(op, actions);
	mmc_op_poll_loss(op, now_ns, actions);
	mmc_op_poll_fetch(op, now_ns, actions);
	poll_awaited(op, now_ns, actions);
	poll_words(op, now_ns, actions);
}

void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions)
{
	uint32_t nbefore = actions->count;
	uint32_t nsends = 0;

	mmc_op_poll_liveness(op, now_ns, actions);
	if (op->state == MMC_OP_ENTRY) {
		poll_eager(op, actions);
		poll_hub(op, now_ns, actions);
		poll_barrier(op, &op->entry, now_ns, actions);
		if (has_entered(op))
			mmc_op_begin_flow(op, now_ns);
	}
	if (serves(op))
		mmc_op_poll_repairer(op, now_ns, actions);
	if (mmc_advertiser_is_due(&op->repair.advertiser) && serves(op))
		mmc_op_poll_advert(op, actions);
	if ((op->nquestions > 0 || op->summoned) && mmc_op_has_begun(op))
		mmc_op_tell_sent(op, actions);
	if (op->state == MMC_OP_FLOW) {
		poll_flow(op, now_ns, actions);
		nsends = actions->count;
		mmc_op_poll_turn(op, now_ns, actions);
		nsends = actions->count - nsends;
		check_complete(op, now_ns);
	}
	if (op->state == MMC_OP_RELEASE || op->state == MMC_OP_HELPING)
		poll_release(op, now_ns, actions);
	poll_alarms(op, actions);
	hand_back(op, now_ns, actions);
	/*
	 * An action may make another one possible at once. A batch that was sent does
	 * not: `sends` says whether the turn goes on.
	 */
	op->due_ns = actions->count - nbefore > nsends ? 0
						       : mmc_op_deadline(op);
	if (op->state == MMC_OP_FLOW && op->watermark.moved)
		mmc_op_wake(op);
}

uint64_t mmc_op_deadline(const struct mmc_op *op)
{
	uint64_t at_ns = serves(op)
				 ? mmc_repairer_deadline(&op->repair.repairer)
				 : MMC_NEVER_NS;

	if ((op->nquestions > 0 || op->summoned) && op->state != MMC_OP_CLOSED)
		return 0;
	if (op->state == MMC_OP_FLOW && mmc_op_is_coded(op) &&
	    op->mender->ready)
		return 0;
	if (op->state == MMC_OP_HELPING)
		return mmc_min_u64(at_ns, op->asking.at_ns);
	if (op->state > MMC_OP_RELEASE)
		return at_ns;
	at_ns = mmc_min_u64(at_ns, op->asking.at_ns);
	at_ns = mmc_min_u64(at_ns, mmc_op_liveness_deadline(op));
	if (op->state == MMC_OP_FLOW) {
		at_ns = mmc_min_u64(at_ns, mmc_repair_deadline(&op->repair));
		at_ns = mmc_min_u64(at_ns, mmc_turn_deadline(&op->turn));
	}
	return at_ns;
}
