/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of an operation: what to do now, and when to look again. */
#include "core/operation/liveness.h"
#include "core/operation/repair.h"
#include "core/operation/silence.h"
#include "core/operation/tell.h"
#include "support/assert.h"
#include "support/bits.h"

/* Eager epochs that may run ahead of the last one that all ranks have done. */
#define EAGER_EPOCHS_MAX 2

/* ---- control messages --------------------------------------------------- */

static void poll_alarms(struct mmc_op *op, struct mmc_actions *actions)
{
	for (; op->alarms > 0 && mmc_actions_room(actions); op->alarms--)
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
}

/* Tells `peer`: the right neighbour, told in the first round, by the advert. */
static void tell_entered(struct mmc_op *op, uint32_t peer,
			 struct mmc_actions *actions)
{
	if (mmc_repair_advertises_to(&op->repair, peer))
		mmc_op_tell_advert(op, actions);
	else
		mmc_op_tell_record(op, peer, actions);
}

/*
 * Tells partners of `barrier` and asks the awaited one. A rank that has returned the
 * buffers to its user asks once for each request it receives.
 */
static void poll_barrier(struct mmc_op *op, struct mmc_barrier *barrier,
			 uint64_t now_ns, struct mmc_actions *actions)
{
	uint32_t peer;

	while (mmc_actions_room(actions) && mmc_barrier_next(barrier, &peer))
		if (barrier == &op->entry)
			tell_entered(op, peer, actions);
		else
			mmc_op_tell_record(op, peer, actions);
	if (mmc_barrier_passed(barrier))
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) && mmc_op_ask_due(op, now_ns)) {
		mmc_op_ask_record(op, mmc_barrier_awaited(barrier), now_ns,
				  actions);
		if (op->state == MMC_OP_HELPING)
			mmc_backoff_stop(&op->asking);
	}
}

/* Sends chunks of this rank's block for the first time; `run` counts from its first. */
static void send_original(struct mmc_op *op, struct mmc_run run,
			  struct mmc_actions *actions)
{
	run.first += op->own.first;
	mmc_op_send_run(op, MMC_PEER_ALL, run, false, actions);
	op->record.sent_chunks += run.count;
}

/* Sends a small block before the barrier, unless too many epochs run ahead. */
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

/* Returns the time from one batch of a chain to its next; 0 while that is not known. */
static uint64_t batch_time_ns(const struct mmc_op *op)
{
	uint64_t nchunks =
		(uint64_t)op->schedule.batch_chunks * op->schedule.nchains;

	if (!op->config.path->measured)
		return 0;
	return mmc_path_time_ns(op->config.path,
				nchunks * op->config.chunk_bytes);
}

/* Returns how many chunks to ask for at a time: receivers buffer the answers too. */
static uint32_t budget_chunks(const struct mmc_op *op)
{
	uint32_t window_bytes = op->record.terms.window_bytes;

	return window_bytes / op->config.chunk_bytes;
}

/* Begins without multicast, which some rank does not get: neighbours pass blocks on. */
static void begin_unicast(struct mmc_op *op, uint64_t now_ns)
{
	op->turn.next = op->own.nchunks;
	op->record.sent_chunks = op->own.nchunks;
	mmc_repair_expect_nothing(&op->repair, now_ns);
	mmc_count(op->config.counters, MMC_COUNT_UNICAST_EPOCHS, 1);
}

/* Accounts for chunks of this rank that an eager operation sent before the barrier. */
static void resume_turn(struct mmc_op *op, uint64_t now_ns)
{
	struct mmc_run sent = { .count = op->record.sent_chunks };

	op->turn.next = sent.count;
	if (sent.count > 0)
		mmc_loss_sent(&op->repair.loss, &op->claimed, &op->own, sent,
			      now_ns);
}

static void begin_repair(struct mmc_op *op, uint64_t srtt_ns, uint64_t now_ns)
{
	const struct mmc_loss_terms terms = {
		.srtt_ns = srtt_ns,
		.late_ns = op->config.path->late_ns,
		.batch_ns = batch_time_ns(op),
		.budget_chunks = budget_chunks(op),
	};

	mmc_repair_begin(&op->repair, &op->schedule, &terms, now_ns);
}

/* Begins the flow: all have entered, and the plan follows from what they agreed on. */
static void begin_flow(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_terms *terms = &op->record.terms;
	uint64_t srtt_ns =
		mmc_min_u64(terms->srtt_us * MMC_US_NS, MMC_PATH_SRTT_MAX_NS);
	uint32_t nchains = op->mode == MMC_OP_EAGER ? op->layout.nsenders
						    : op->config.nchains;

	mmc_count(op->config.counters, MMC_COUNT_ENTRY_NS,
		  now_ns - op->stage_ns);
	op->stage_ns = now_ns;
	if (terms->signature_min != terms->signature_max) {
		/* Others may not have heard all ranks when this one goes away. */
		mmc_op_fail(op, MMC_EMISMATCH, MMC_PEER_ALL, true);
		return;
	}
	if (terms->deaf != 0)
		op->mode = MMC_OP_UNICAST;
	mmc_schedule_init(&op->schedule, op->schedule_memory, &op->layout,
			  nchains, terms->window_bytes, terms->source_bytes);
	mmc_schedule_widen(&op->schedule, op->config.batch_chunks);
	begin_repair(op, srtt_ns, now_ns);
	mmc_watermark_init(&op->watermark, op->watermark_memory,
			   op->config.rank, &op->schedule);
	mmc_turn_init(&op->turn, op->config.rank, &op->schedule, now_ns);
	if (op->mode == MMC_OP_UNICAST)
		begin_unicast(op, now_ns);
	else
		resume_turn(op, now_ns);
	mmc_op_drain_passed(op);
	op->heard.source = MMC_PEER_ALL;
	mmc_op_renew(op);
	mmc_op_ask_soon(op, now_ns);
	mmc_op_step(op, MMC_OP_ALL_ENTERED);
	mmc_op_serve_early(op, now_ns);
}

static void poll_watermark(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;
	uint32_t peer;

	mmc_op_message(op, MMC_MESSAGE_REPORT, &message);
	if (!mmc_actions_room(actions) ||
	    !mmc_watermark_due(&op->watermark, message.positions, &peer))
		return;
	if (peer == MMC_PEER_ALL)
		message.kind = MMC_MESSAGE_WATERMARK;
	message.nitems = op->watermark.nchains;
	mmc_op_tell(op, peer, &message, actions);
}

/* Makes sure that the awaited rank lives, but only while nothing new arrives. */
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

/* Sends one batch at a time, so that what has arrived meanwhile is taken in between. */
static void poll_turn(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	const struct mmc_chain *chain = &op->repair.loss.chains[op->turn.chain];
	struct mmc_run run;

	if (mmc_actions_room(actions) && mmc_turn_probe(&op->turn, now_ns))
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
	if (mmc_actions_room(actions) &&
	    mmc_turn_ask(&op->turn, &op->repair.loss, &op->watermark,
			 op->config.path, now_ns))
		mmc_op_ask_record(op, op->turn.predecessor, now_ns, actions);
	if (!mmc_actions_room(actions) ||
	    !mmc_turn_next(&op->turn, &op->repair.loss, &op->watermark,
			   op->config.path, now_ns, &run))
		return;
	mmc_loss_sent(&op->repair.loss, &op->claimed, &op->own, run, now_ns);
	send_original(op, run, actions);
	mmc_watermark_drain(&op->watermark, op->turn.chain, chain->npassed);
	mmc_op_renew(op);
	/* Otherwise the loss of the last chunk would only show by silence. */
	if (op->config.path->lossy && mmc_turn_over(&op->turn) &&
	    mmc_actions_room(actions))
		mmc_op_tell_record(op, MMC_PEER_ALL, actions);
}

/* Returns whether nothing refers to the buffers: reads end in memory of their own. */
static bool quiescent(const struct mmc_op *op)
{
	return op->nplacing == 0 && op->nsending == 0;
}

static uint64_t received_bytes(const struct mmc_op *op)
{
	return op->layout.total_bytes - op->own.nbytes;
}

/* Returns the bytes per second of this rank in the direction that had more. */
static uint64_t rate_of(const struct mmc_op *op, uint64_t now_ns)
{
	uint64_t nbytes = mmc_max_u64(received_bytes(op), op->own.nbytes);
	uint64_t time_us = (now_ns - op->stage_ns) / MMC_US_NS + 1;

	return nbytes / time_us * 1000000;
}

/* Measures the rate; a rank that receives little, as a Bcast's root, by its sends. */
static void measure_rate(const struct mmc_op *op, uint64_t now_ns)
{
	uint64_t nbytes = received_bytes(op);

	if (nbytes > 0 && nbytes >= op->own.nbytes)
		mmc_path_received(op->config.path, nbytes,
				  op->repair.loss.heard_ns - op->stage_ns);
	else if (nbytes < op->own.nbytes && op->config.nranks > 1)
		mmc_path_received(op->config.path, op->own.nbytes,
				  now_ns - op->stage_ns);
}

/* Adapts the window; at least an average block counts, so that all sample together. */
static void adapt_window(const struct mmc_op *op,
			 const struct mmc_repair_losses *losses,
			 uint64_t now_ns)
{
	const struct mmc_window_sample sample = {
		.window_bytes = op->record.terms.window_bytes,
		.chunk_bytes = op->config.chunk_bytes,
		.nchunks =
			mmc_max_u32(losses->block_chunks,
				    op->layout.nchunks / op->layout.nsenders),
		.nlost = losses->nlost,
		.nshared = losses->nshared,
		.rate_bytes_per_s = rate_of(op, now_ns),
	};

	mmc_window_adapt(&op->config.path->window, &sample);
}

/* Counts the stages' times, and learns the path's rate, window and health. */
static void measure(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_op_config *config = &op->config;
	const struct mmc_repair_losses losses =
		op->repair.policy->losses(&op->repair, op->own.nchunks);
	/* Chunks that arrive before the stream is open here are foreign, not lost. */
	bool begins_stream = op->mode == MMC_OP_EAGER && config->epoch == 1;
	const struct mmc_reception reception = {
		.begin_ns = op->stage_ns,
		.end_ns = now_ns,
		.expected_chunks = op->layout.nchunks - op->own.nchunks,
		.heard_chunks = mmc_loss_heard(&op->repair.loss),
		.unheard = mmc_loss_unheard(&op->repair.loss),
		.lag_ns = config->reliable ? MMC_PATH_LAG_RELIABLE_NS : 0,
	};

	mmc_count(config->counters, MMC_COUNT_MULTICAST_NS,
		  op->repair.loss.heard_ns - op->stage_ns);
	mmc_count(config->counters, MMC_COUNT_REPAIR_NS,
		  now_ns - op->repair.loss.heard_ns);
	config->path->lossy = losses.nlost > 0;
	mmc_path_settle(config->path);
	if (op->mode == MMC_OP_STAGED)
		adapt_window(op, &losses, now_ns);
	if (op->mode != MMC_OP_UNICAST && !begins_stream)
		mmc_path_heard(config->path, &reception);
	if (op->mode == MMC_OP_STAGED)
		measure_rate(op, now_ns);
	op->stage_ns = now_ns;
}

/* Returns how the operation completes: what serves repairs from then on. */
static enum mmc_op_event completion(const struct mmc_op *op)
{
	uint64_t retain_bytes = op->config.retain_bytes;

	if (op->repair.policy->release == MMC_RELEASE_RIGHT ||
	    op->own.nbytes > retain_bytes)
		return MMC_OP_COMPLETE;
	return op->layout.largest_bytes > retain_bytes
		       ? MMC_OP_COMPLETE_AHEAD
		       : MMC_OP_COMPLETE_WITH_COPY;
}

static void check_complete(struct mmc_op *op, uint64_t now_ns)
{
	enum mmc_op_event how = completion(op);

	if (op->npresent < op->layout.nchunks || !mmc_turn_over(&op->turn) ||
	    !quiescent(op) || op->repair.fetcher.nreading > 0)
		return;
	measure(op, now_ns);
	op->record.flags |= MMC_RECORD_DONE;
	mmc_op_step(op, how);
	mmc_barrier_join(&op->release);
	mmc_op_renew(op);
	if (mmc_op_has_copy(op))
		mmc_backoff_stop(&op->asking);
	else
		mmc_op_ask_soon(op, now_ns);
}

static void poll_release(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	if (op->repair.policy->release == MMC_RELEASE_ALL) {
		poll_barrier(op, &op->release, now_ns, actions);
		if (mmc_barrier_passed(&op->release) && quiescent(op))
			mmc_op_step(op, MMC_OP_ALL_DONE);
		return;
	}
	if (op->config.nranks == 1) {
		op->left_told = true;
		op->right_done = true;
	}
	if (!op->left_told && mmc_actions_room(actions)) {
		mmc_op_tell_record(op, mmc_op_left(op), actions);
		op->left_told = true;
	}
	if (op->right_done && op->left_told && quiescent(op) &&
	    !mmc_repairer_owes(&op->repair.repairer))
		mmc_op_step(op, MMC_OP_RIGHT_DONE);
	else if (op->right_done)
		mmc_backoff_stop(&op->asking);
	else if (mmc_actions_room(actions) && mmc_op_ask_due(op, now_ns))
		mmc_op_ask_record(op, mmc_op_right(op), now_ns, actions);
}

/* Hands the buffers back, and later the operation itself. */
static void report(struct mmc_op *op, uint64_t now_ns,
		   struct mmc_actions *actions)
{
	bool failed = op->state >= MMC_OP_FAILED;
	struct mmc_action *action;

	if (op->state <= MMC_OP_RELEASE || !quiescent(op))
		return;
	/* A user told of a failure may close the stream: other ranks are told first. */
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

void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions)
{
	mmc_op_poll_liveness(op, now_ns, actions);
	if (op->state == MMC_OP_ENTRY) {
		poll_eager(op, actions);
		poll_barrier(op, &op->entry, now_ns, actions);
		if (mmc_barrier_passed(&op->entry) &&
		    op->entry.told == op->entry.nrounds)
			begin_flow(op, now_ns);
	}
	if (serves(op))
		mmc_op_poll_repairer(op, now_ns, actions);
	if (mmc_advertiser_is_due(&op->repair.advertiser) && serves(op))
		mmc_op_poll_advert(op, actions);
	if ((op->nquestions > 0 || op->summoned) && mmc_op_has_begun(op))
		mmc_op_tell_sent(op, actions);
	if (op->state == MMC_OP_FLOW) {
		if (op->watermark.moved && op->watermark.step_chunks > 0)
			poll_watermark(op, actions);
		mmc_op_poll_loss(op, now_ns, actions);
		mmc_op_poll_fetch(op, now_ns, actions);
		poll_awaited(op, now_ns, actions);
		poll_turn(op, now_ns, actions);
		check_complete(op, now_ns);
	}
	if (op->state == MMC_OP_RELEASE || op->state == MMC_OP_HELPING)
		poll_release(op, now_ns, actions);
	poll_alarms(op, actions);
	report(op, now_ns, actions);
}

uint64_t mmc_op_deadline(const struct mmc_op *op)
{
	uint64_t at_ns = serves(op)
				 ? mmc_repairer_deadline(&op->repair.repairer)
				 : MMC_NEVER_NS;

	if ((op->nquestions > 0 || op->summoned) && op->state != MMC_OP_CLOSED)
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
