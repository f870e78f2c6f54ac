/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of an operation: what to do now, and when to look again. */
#include "core/assert.h"
#include "core/bits.h"
#include "core/op.h"

/* Eager epochs that may run ahead of the last one that all have done. */
#define EAGER_EPOCHS_MAX 2

/* Requests after which it is clear that answers by multicast do not arrive. */
#define NAKS_BEFORE_PLEA 2

/* A request of less would be answered in less than a batch or two. */
#define BUDGET_CHUNKS_MIN 32

/* ---- patience ----------------------------------------------------------- */

/* Who never entered is named by those who wait for it directly. */
static bool entry_is_overdue(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t limit_ns = op->config.entry_timeout_ns;

	return op->state == MMC_OP_GATE && limit_ns != 0 &&
	       mmc_patience_over(&op->entering, now_ns, limit_ns) &&
	       !mmc_gate_passed(&op->entry) &&
	       !mmc_gate_awaited_joined(&op->entry);
}

/*
 * Waiting is over when the awaited rank gives no answer, or answers while no
 * data comes. The latter takes a little longer: it may itself await the one
 * that gives no answer, and will say so.
 */
static void check_patience(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t limit_ns = op->config.timeout_ns;

	if (op->state > MMC_OP_RELEASE)
		return;
	if (op->renewed) {
		op->renewed = false;
		mmc_patience_reset(&op->progress, now_ns);
		mmc_patience_reset(&op->listening, now_ns);
	}
	if (entry_is_overdue(op, now_ns))
		mmc_op_fail(op, MMC_ENOENTRY, mmc_op_awaited(op), true);
	else if (mmc_patience_over(&op->listening, now_ns, limit_ns))
		mmc_op_fail(op, MMC_ENOANSWER, mmc_op_awaited(op), true);
	else if (op->state == MMC_OP_FLOW &&
		 mmc_patience_over(&op->progress, now_ns,
				   limit_ns + limit_ns / 4))
		mmc_op_fail(op, MMC_ENOPROGRESS, mmc_op_awaited(op), true);
}

/* ---- control messages --------------------------------------------------- */

static struct mmc_message message_of(const struct mmc_op *op,
				     enum mmc_message_kind kind)
{
	struct mmc_message message;

	message.kind = kind;
	message.stamp_us = 0;
	message.echo_us = 0;
	message.record = op->record;
	message.nitems = 0;
	return message;
}

static void tell(struct mmc_op *op, uint32_t peer,
		 const struct mmc_message *message, struct mmc_actions *actions)
{
	mmc_actions_tell(actions, op, op->config.channel, op->config.epoch,
			 peer, message);
}

static void tell_record(struct mmc_op *op, uint32_t peer,
			struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_RECORD);

	tell(op, peer, &message, actions);
}

/* Asks for a record: the stamp wants an answer, and 0 is no stamp. */
static void ask_record(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_RECORD);

	message.stamp_us = (uint32_t)(now_ns / MMC_US_NS) | 1;
	tell(op, peer, &message, actions);
}

static void poll_alarms(struct mmc_op *op, struct mmc_actions *actions)
{
	for (; op->alarms > 0 && mmc_actions_room(actions); op->alarms--)
		tell_record(op, MMC_PEER_ALL, actions);
}

/* Tells partners of `gate` and asks the one that is waited for. */
static void poll_gate(struct mmc_op *op, struct mmc_gate *gate, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	uint32_t peer;

	while (mmc_actions_room(actions) && mmc_gate_next(gate, &peer))
		tell_record(op, peer, actions);
	if (mmc_gate_passed(gate))
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) &&
		 mmc_backoff_due(&op->asking, now_ns))
		ask_record(op, mmc_gate_awaited(gate), now_ns, actions);
}

static void send_run(struct mmc_op *op, uint32_t peer, struct mmc_run run,
		     bool repair, struct mmc_actions *actions)
{
	struct mmc_action *action =
		mmc_actions_add(actions, MMC_ACTION_SEND, op);

	action->peer = peer;
	action->run = run;
	action->repair = repair;
	op->nsending += run.count;
}

/* Sends chunks of the own block for the first time, from its `first` on. */
static void send_original(struct mmc_op *op, struct mmc_run run,
			  struct mmc_actions *actions)
{
	run.first += mmc_layout_first(&op->layout, op->config.rank);
	send_run(op, MMC_PEER_ALL, run, false, actions);
	op->record.sent_chunks += run.count;
}

/* A small block precedes the gate, unless too much has already. */
static void poll_eager(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_run block = { .first = 0, .count = op->layout.block_chunks };

	if (!op->eager || op->record.sent_chunks > 0 ||
	    op->config.lag_epochs > EAGER_EPOCHS_MAX ||
	    !mmc_actions_room(actions))
		return;
	send_original(op, block, actions);
}

/* What came before the plan, or is surely lost, fills no buffer either. */
static void drain_passed(struct mmc_op *op)
{
	op->loss.passed = false;
	for (uint32_t c = 0; c < op->schedule.nchains; c++)
		mmc_watermark_drain(&op->mark, c, op->loss.chains[c].seen);
}

/* From one batch of a chain to its next; 0 while that is not known. */
static uint64_t batch_time_ns(const struct mmc_op *op)
{
	uint64_t nchunks =
		(uint64_t)op->schedule.batch_chunks * op->schedule.nchains;

	if (!op->config.path->measured)
		return 0;
	return mmc_path_time_ns(op->config.path,
				nchunks * op->config.chunk_bytes);
}

/* What may be asked for at a time: receivers buffer the answers too. */
static uint32_t budget_chunks(const struct mmc_op *op)
{
	uint32_t window_bytes = op->record.terms.window_bytes;

	return mmc_max_u32(BUDGET_CHUNKS_MIN,
			   window_bytes / op->config.chunk_bytes);
}

/* Multicast reaches somebody no more: blocks go from neighbour to neighbour. */
static void begin_unicast(struct mmc_op *op, uint64_t now_ns)
{
	op->turn.next = op->layout.block_chunks;
	op->record.sent_chunks = op->layout.block_chunks;
	mmc_loss_expect_nothing(&op->loss, op->strategy, now_ns);
	mmc_count(op->config.counters, MMC_COUNT_UNICAST_EPOCHS, 1);
}

/* All have entered: the plan follows from what they agreed on. */
static void begin_flow(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_terms *terms = &op->record.terms;
	uint64_t srtt_ns =
		mmc_min_u64(terms->srtt_us * MMC_US_NS, MMC_PATH_SRTT_MAX_NS);
	uint32_t nchains = op->eager ? op->config.nranks : op->config.nchains;

	mmc_count(op->config.counters, MMC_COUNT_GATE_NS,
		  now_ns - op->stage_ns);
	op->stage_ns = now_ns;
	op->original_ns = now_ns;
	if (terms->signature_min != terms->signature_max) {
		/* Others may not have heard all when this rank goes away. */
		mmc_op_fail(op, MMC_EMISMATCH, MMC_PEER_ALL, true);
		return;
	}
	op->unicast = (terms->flags & MMC_TERMS_UNICAST) != 0;
	if (op->unicast)
		op->strategy = mmc_repair_strategy(MMC_REPAIR_NEIGHBOUR);
	mmc_schedule_init(&op->schedule, &op->layout, nchains,
			  terms->window_bytes);
	mmc_loss_begin(&op->loss, &op->schedule, &op->claimed, srtt_ns,
		       batch_time_ns(op), budget_chunks(op), now_ns);
	mmc_donor_init(&op->donor, op->donor_memory, op->layout.nchunks,
		       &op->present, op->strategy->gathers, op->loss.jitter_ns,
		       2 * srtt_ns);
	mmc_watermark_init(&op->mark, op->mark_memory, op->config.rank,
			   &op->schedule);
	drain_passed(op);
	mmc_turn_init(&op->turn, op->config.rank, &op->schedule,
		      op->config.chunk_bytes);
	op->turn.next = op->record.sent_chunks;
	if (op->unicast)
		begin_unicast(op, now_ns);
	op->begun = true;
	mmc_op_renew(op);
	mmc_op_ask_soon(op, now_ns);
	mmc_op_step(op, MMC_OP_ALL_ENTERED);
}

static void poll_mark(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_REPORT);
	uint32_t peer;

	if (!mmc_actions_room(actions) ||
	    !mmc_watermark_due(&op->mark, message.positions, &peer))
		return;
	if (peer == MMC_PEER_ALL)
		message.kind = MMC_MESSAGE_WATERMARK;
	message.nitems = op->mark.nchains;
	tell(op, peer, &message, actions);
}

static void ask_for_lost(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_message message = message_of(
		op, op->loss.nasked < NAKS_BEFORE_PLEA ? MMC_MESSAGE_NAK
						       : MMC_MESSAGE_PLEA);
	uint32_t peer;
	uint32_t nlost = 0;

	while (mmc_actions_room(actions) &&
	       mmc_loss_ask(&op->loss, &op->claimed, now_ns, &peer,
			    message.runs, &message.nitems, &nlost))
		tell(op, peer, &message, actions);
	if (!op->unicast)
		mmc_count(op->config.counters, MMC_COUNT_RX_LOST_CHUNKS, nlost);
}

/* Asks for what is missing, and silent senders for how far they are. */
static void poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	uint32_t peer;

	if (op->config.path->backlog || now_ns < mmc_loss_deadline(&op->loss))
		return;
	ask_for_lost(op, now_ns, actions);
	while (mmc_actions_room(actions) &&
	       mmc_loss_silent(&op->loss, now_ns, &peer))
		ask_record(op, peer, now_ns, actions);
	if (op->loss.passed)
		drain_passed(op);
}

/* Makes sure that the awaited rank lives, but only when nothing new comes. */
static void poll_awaited(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	uint32_t peer;

	if (!mmc_actions_room(actions) ||
	    !mmc_backoff_due(&op->asking, now_ns) ||
	    op->progress.spent_ns < MMC_BACKOFF_MAX_NS)
		return;
	peer = mmc_op_awaited(op);
	if (peer != MMC_PEER_ALL)
		ask_record(op, peer, now_ns, actions);
}

/* Says what is going to be multicast again, so that others need not ask. */
static void tell_echo(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_ECHO);

	if (mmc_donor_echo(&op->donor, message.runs, &message.nitems))
		tell(op, MMC_PEER_ALL, &message, actions);
}

static void poll_donor(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	struct mmc_run run;
	uint32_t peer;

	if (op->donor.echo && mmc_actions_room(actions))
		tell_echo(op, actions);
	if (mmc_actions_room(actions) &&
	    mmc_donor_next(&op->donor, now_ns, MMC_BATCH_CHUNKS_MAX, &peer,
			   &run))
		send_run(op, peer, run, true, actions);
}

/* One batch at a time: what has come meanwhile is taken in between. */
static void poll_turn(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	uint32_t chain = mmc_schedule_chain(&op->schedule, op->config.rank);
	uint32_t start = mmc_schedule_start(&op->schedule, op->config.rank);
	struct mmc_run run;

	if (mmc_actions_room(actions) && mmc_turn_probe(&op->turn, now_ns))
		tell_record(op, MMC_PEER_ALL, actions);
	if (!mmc_actions_room(actions) ||
	    !mmc_turn_next(&op->turn, &op->loss.chains[chain], &op->mark,
			   op->config.path, now_ns, &run))
		return;
	mmc_loss_sent(&op->loss, chain, start + run.first, run.count, now_ns);
	send_original(op, run, actions);
	mmc_watermark_drain(&op->mark, chain, start + op->turn.next);
	mmc_op_renew(op);
}

static bool quiescent(const struct mmc_op *op)
{
	return op->nplacing == 0 && op->nsending == 0;
}

/* What this rank has received a second in this operation. */
static uint64_t rate_of(const struct mmc_op *op, uint64_t now_ns)
{
	uint64_t nbytes = op->config.block_bytes * (op->config.nranks - 1);
	uint64_t time_us = (now_ns - op->stage_ns) / MMC_US_NS + 1;

	return nbytes / time_us * 1000000;
}

/* Counts the stages' times, and learns the path's rate, window and health. */
static void measure(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_op_config *config = &op->config;

	mmc_count(config->counters, MMC_COUNT_MULTICAST_NS,
		  op->original_ns - op->stage_ns);
	mmc_count(config->counters, MMC_COUNT_REPAIR_NS,
		  now_ns - op->original_ns);
	if (!op->unicast && !op->eager)
		mmc_path_adapt(config->path, op->record.terms.window_bytes,
			       config->chunk_bytes, op->layout.block_chunks,
			       op->donor.nlost, op->donor.nshared,
			       rate_of(op, now_ns));
	if (!op->unicast)
		mmc_path_heard(config->path,
			       op->layout.nchunks - op->layout.block_chunks,
			       mmc_loss_heard(&op->loss),
			       mmc_loss_deaf(&op->loss));
	if (!op->unicast && !op->eager && config->nranks > 1)
		mmc_path_received(config->path,
				  config->block_bytes * (config->nranks - 1),
				  op->original_ns - op->stage_ns);
	op->stage_ns = now_ns;
}

static void check_complete(struct mmc_op *op, uint64_t now_ns)
{
	bool all = op->strategy->release == MMC_RELEASE_ALL;

	if (op->npresent < op->layout.nchunks || !mmc_turn_over(&op->turn) ||
	    !quiescent(op))
		return;
	measure(op, now_ns);
	op->record.flags |= MMC_RECORD_DONE;
	op->copied = all && op->config.block_bytes <= op->config.retain_bytes;
	mmc_op_step(op,
		    op->copied ? MMC_OP_COMPLETE_WITH_COPY : MMC_OP_COMPLETE);
	mmc_gate_join(&op->release);
	mmc_op_renew(op);
	mmc_op_ask_soon(op, now_ns);
}

static void poll_release(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	uint32_t nranks = op->config.nranks;
	uint32_t left = (op->config.rank + nranks - 1) % nranks;

	if (op->strategy->release == MMC_RELEASE_ALL) {
		poll_gate(op, &op->release, now_ns, actions);
		if (mmc_gate_passed(&op->release) && quiescent(op))
			mmc_op_step(op, MMC_OP_ALL_DONE);
		return;
	}
	if (nranks == 1) {
		op->left_told = true;
		op->right_done = true;
	}
	if (!op->left_told && mmc_actions_room(actions)) {
		tell_record(op, left, actions);
		op->left_told = true;
	}
	if (op->right_done && op->left_told && quiescent(op))
		mmc_op_step(op, MMC_OP_RIGHT_DONE);
	else if (op->right_done)
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) &&
		 mmc_backoff_due(&op->asking, now_ns))
		ask_record(op, (op->config.rank + 1) % nranks, now_ns, actions);
}

/* Hands the buffers back, and later the operation itself. */
static void report(struct mmc_op *op, uint64_t now_ns,
		   struct mmc_actions *actions)
{
	bool failed = op->state == MMC_OP_FAILED;
	struct mmc_action *action;

	if (op->state < MMC_OP_RETAINED || !quiescent(op))
		return;
	if (!op->reported && mmc_actions_room(actions)) {
		action = mmc_actions_add(
			actions, failed ? MMC_ACTION_FAILED : MMC_ACTION_DONE,
			op);
		action->retain = op->copied;
		op->reported = true;
		mmc_count(op->config.counters, MMC_COUNT_RELEASE_NS,
			  now_ns - op->stage_ns);
	}
	if (op->state != MMC_OP_RETAINED && op->reported && op->alarms == 0 &&
	    !op->closed && mmc_actions_room(actions)) {
		mmc_actions_add(actions, MMC_ACTION_CLOSED, op);
		op->closed = true;
	}
}

/* Whether this rank still holds what others may ask it for. */
static bool serves(const struct mmc_op *op)
{
	return op->state == MMC_OP_FLOW || op->state == MMC_OP_RELEASE ||
	       (op->state == MMC_OP_RETAINED && op->copied);
}

void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions)
{
	check_patience(op, now_ns);
	poll_alarms(op, actions);
	if (op->state == MMC_OP_GATE) {
		poll_eager(op, actions);
		poll_gate(op, &op->entry, now_ns, actions);
		if (mmc_gate_passed(&op->entry) &&
		    op->entry.told == op->entry.nrounds)
			begin_flow(op, now_ns);
	}
	if (serves(op))
		poll_donor(op, now_ns, actions);
	if (op->state == MMC_OP_FLOW) {
		if (op->mark.moved && op->mark.step_chunks > 0)
			poll_mark(op, actions);
		poll_loss(op, now_ns, actions);
		poll_awaited(op, now_ns, actions);
		poll_turn(op, now_ns, actions);
		check_complete(op, now_ns);
	}
	if (op->state == MMC_OP_RELEASE)
		poll_release(op, now_ns, actions);
	report(op, now_ns, actions);
}

uint64_t mmc_op_deadline(const struct mmc_op *op)
{
	uint64_t at_ns = serves(op) ? mmc_donor_deadline(&op->donor)
				    : MMC_NEVER_NS;

	if (op->state > MMC_OP_RELEASE)
		return at_ns;
	at_ns = mmc_min_u64(at_ns, op->asking.at_ns);
	at_ns = mmc_min_u64(at_ns,
			    mmc_patience_deadline(&op->listening,
						  op->config.timeout_ns));
	if (op->state == MMC_OP_FLOW) {
		at_ns = mmc_min_u64(at_ns, mmc_loss_deadline(&op->loss));
		at_ns = mmc_min_u64(at_ns, mmc_turn_deadline(&op->turn));
	}
	if (op->state == MMC_OP_GATE && op->config.entry_timeout_ns != 0)
		at_ns = mmc_min_u64(
			at_ns,
			mmc_patience_deadline(&op->entering,
					      op->config.entry_timeout_ns));
	return at_ns;
}
