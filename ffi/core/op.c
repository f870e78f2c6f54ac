/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/op.h"

#include "core/assert.h"
#include "core/bits.h"
#include "core/memory.h"

/* A partner that has not answered is asked again no sooner than this. */
#define ASK_MIN_NS (200 * MMC_US_NS)

/* A failure is told so often: what all wait for is not asked for by any. */
#define ALARMS 3

/* Eager epochs that may run ahead of the last one that all have done. */
#define EAGER_EPOCHS_MAX 2

/* ---- states ------------------------------------------------------------- */

struct transition {
	enum mmc_op_state state;
	enum mmc_op_event event;
	enum mmc_op_state next;
};

static const struct transition transitions[] = {
#define MMC_OP_ROW(state, event, next)                                         \
	{ MMC_OP_##state, MMC_OP_##event, MMC_OP_##next },
	MMC_OP_TABLE(MMC_OP_ROW)
#undef MMC_OP_ROW
};

bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions); i++)
		if (transitions[i].state == state &&
		    transitions[i].event == event) {
			*next = transitions[i].next;
			return true;
		}
	return false;
}

void mmc_op_step(struct mmc_op *op, enum mmc_op_event event)
{
	MMC_ASSERT(mmc_op_next_state(op->state, event, &op->state));
}

const char *mmc_op_state_name(enum mmc_op_state state)
{
	switch (state) {
	case MMC_OP_GATE:
		return "gate";
	case MMC_OP_FLOW:
		return "flow";
	case MMC_OP_RELEASE:
		return "release";
	case MMC_OP_RETAINED:
		return "retained";
	case MMC_OP_CLOSED:
		return "closed";
	case MMC_OP_FAILED:
		return "failed";
	}
	return "unknown";
}

/* ---- entering ----------------------------------------------------------- */

size_t mmc_op_footprint(const struct mmc_op_config *config)
{
	struct mmc_layout layout;
	uint32_t nchains = mmc_min_u32(config->nranks, MMC_CHAINS_MAX);

	if (mmc_layout_init(&layout, config->nranks, config->block_bytes,
			    config->chunk_bytes) != 0)
		return 0;
	return mmc_part_bytes(sizeof(struct mmc_op)) +
	       2 * mmc_part_bytes(mmc_bitmap_bytes(layout.nchunks)) +
	       mmc_part_bytes(mmc_loss_bytes(layout.nchunks, nchains)) +
	       mmc_part_bytes(mmc_donor_bytes(layout.nchunks)) +
	       mmc_part_bytes(mmc_watermark_bytes(config->nranks, nchains));
}

static bool is_eager(const struct mmc_op_config *config)
{
	return config->block_bytes > 0 &&
	       config->block_bytes <= config->chunk_bytes &&
	       config->block_bytes * config->nranks <= config->eager_bytes;
}

static struct mmc_record first_record(const struct mmc_op_config *config)
{
	return (struct mmc_record){
		.flags = MMC_RECORD_ENTERED,
		.culprit = MMC_PEER_ALL,
		.terms = {
			.signature_min = config->signature,
			.signature_max = config->signature,
			.window_bytes = config->window_bytes,
			.srtt_us = (uint32_t)(config->path->srtt_ns /
					      MMC_US_NS),
			.lag_epochs = config->lag_epochs,
		},
	};
}

/* Gives the parts of the operation their memory, in the footprint's order. */
static void lay_out(struct mmc_op *op, uint8_t *memory)
{
	const struct mmc_op_config *config = &op->config;
	uint32_t nchunks = op->layout.nchunks;
	uint32_t nchains = mmc_min_u32(config->nranks, MMC_CHAINS_MAX);
	size_t map_bytes = mmc_bitmap_bytes(nchunks);
	uint8_t *part;

	mmc_bitmap_init(&op->claimed, mmc_part_take(&memory, map_bytes),
			nchunks);
	mmc_bitmap_init(&op->present, mmc_part_take(&memory, map_bytes),
			nchunks);
	part = mmc_part_take(&memory, mmc_loss_bytes(nchunks, nchains));
	mmc_loss_init(&op->loss, part, config->rank, nchunks, nchains,
		      config->seed, op->strategy);
	op->donor_memory = mmc_part_take(&memory, mmc_donor_bytes(nchunks));
	op->mark_memory = mmc_part_take(
		&memory, mmc_watermark_bytes(config->nranks, nchains));
}

static void own_block_is_here(struct mmc_op *op)
{
	struct mmc_run own = {
		.first = mmc_layout_first(&op->layout, op->config.rank),
		.count = op->layout.block_chunks,
	};

	mmc_bitmap_set_run(&op->claimed, own);
	mmc_bitmap_set_run(&op->present, own);
	op->npresent = own.count;
}

struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns)
{
	struct mmc_op *op = memory;
	int rv;

	*op = (struct mmc_op){
		.config = *config,
		.strategy = mmc_repair_strategy(config->repair),
		.state = MMC_OP_GATE,
		.record = first_record(config),
		.eager = is_eager(config),
		.stage_ns = now_ns,
		.original_ns = now_ns,
	};
	rv = mmc_layout_init(&op->layout, config->nranks, config->block_bytes,
			     config->chunk_bytes);
	MMC_ASSERT(rv == 0);
	lay_out(op, (uint8_t *)memory + mmc_part_bytes(sizeof(*op)));
	own_block_is_here(op);
	mmc_gate_init(&op->entry, config->rank, config->nranks);
	mmc_gate_init(&op->release, config->rank, config->nranks);
	mmc_gate_join(&op->entry);
	mmc_op_renew(op, now_ns);
	mmc_patience_reset(&op->entering, now_ns);
	mmc_op_ask_soon(op, now_ns);
	return op;
}

void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns)
{
	mmc_backoff_start(&op->asking, now_ns,
			  mmc_max_u64(ASK_MIN_NS,
				      2 * op->config.path->srtt_ns));
}

/* ---- failing ------------------------------------------------------------ */

void mmc_op_fail(struct mmc_op *op, enum mmc_error error, uint32_t culprit,
		 bool tell)
{
	if (op->state > MMC_OP_RELEASE)
		return;
	op->record.flags |= MMC_RECORD_FAILED;
	op->record.failure = (uint8_t)error;
	op->record.culprit = culprit;
	op->alarms = tell ? ALARMS : 0;
	mmc_op_step(op, MMC_OP_FAILURE);
}

void mmc_op_all_done(struct mmc_op *op)
{
	if (op->state == MMC_OP_RETAINED)
		mmc_op_step(op, MMC_OP_ALL_DONE);
}

uint32_t mmc_op_awaited(const struct mmc_op *op)
{
	uint32_t nranks = op->config.nranks;
	const struct mmc_bitmap *present = &op->present;
	struct mmc_run missing;

	switch (op->state) {
	case MMC_OP_GATE:
		return mmc_gate_passed(&op->entry)
			       ? MMC_PEER_ALL
			       : mmc_gate_awaited(&op->entry);
	case MMC_OP_FLOW:
		missing = mmc_bitmap_next_clear(&present, 1, 0,
						op->layout.nchunks);
		if (missing.count == 0)
			return MMC_PEER_ALL;
		return op->strategy->donor(
			op->config.rank, nranks,
			mmc_layout_owner(&op->layout, missing.first), 0);
	case MMC_OP_RELEASE:
		if (op->strategy->release == MMC_RELEASE_RIGHT)
			return (op->config.rank + 1) % nranks;
		return mmc_gate_passed(&op->release)
			       ? MMC_PEER_ALL
			       : mmc_gate_awaited(&op->release);
	default:
		return MMC_PEER_ALL;
	}
}

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
	if (entry_is_overdue(op, now_ns))
		mmc_op_fail(op, MMC_ENOENTRY, mmc_op_awaited(op), true);
	else if (mmc_patience_over(&op->listening, now_ns, limit_ns))
		mmc_op_fail(op, MMC_ENOANSWER, mmc_op_awaited(op), true);
	else if (op->state == MMC_OP_FLOW &&
		 mmc_patience_over(&op->progress, now_ns,
				   limit_ns + limit_ns / 4))
		mmc_op_fail(op, MMC_ENOPROGRESS, mmc_op_awaited(op), true);
}

/* ---- what to do now ----------------------------------------------------- */

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

/* What came before the plan, or was lost for certain, fills no buffer either. */
static void drain_passed(struct mmc_op *op)
{
	op->loss.passed = false;
	for (uint32_t c = 0; c < op->schedule.nchains; c++)
		mmc_watermark_drain(&op->mark, c, op->loss.chains[c].seen);
}

/* All have entered: the plan follows from what they agreed on. */
static void begin_flow(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_terms *terms = &op->record.terms;
	uint64_t srtt_ns = terms->srtt_us * MMC_US_NS;
	uint32_t nchains = op->eager ? op->config.nranks : op->config.nchains;

	mmc_count(op->config.counters, MMC_COUNT_GATE_NS,
		  now_ns - op->stage_ns);
	op->stage_ns = now_ns;
	op->original_ns = now_ns;
	if (terms->signature_min != terms->signature_max) {
		mmc_op_fail(op, MMC_EMISMATCH, MMC_PEER_ALL, false);
		return;
	}
	mmc_schedule_init(&op->schedule, &op->layout, nchains,
			  terms->window_bytes);
	mmc_loss_begin(&op->loss, &op->schedule, &op->claimed, srtt_ns, now_ns);
	mmc_donor_init(&op->donor, op->donor_memory, op->layout.nchunks,
		       op->strategy->gathers, op->loss.jitter_ns, srtt_ns);
	mmc_watermark_init(&op->mark, op->mark_memory, op->config.rank,
			   &op->schedule);
	drain_passed(op);
	mmc_turn_init(&op->turn, op->config.rank, &op->schedule,
		      op->config.chunk_bytes);
	op->turn.next = op->record.sent_chunks;
	op->begun = true;
	mmc_op_renew(op, now_ns);
	mmc_op_ask_soon(op, now_ns);
	mmc_op_step(op, MMC_OP_ALL_ENTERED);
}

static void poll_mark(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;
	uint32_t peer;

	if (!mmc_actions_room(actions) ||
	    !mmc_watermark_due(&op->mark, message.positions, &peer))
		return;
	message.kind = peer == MMC_PEER_ALL ? MMC_MESSAGE_WATERMARK
					    : MMC_MESSAGE_REPORT;
	message.stamp_us = 0;
	message.echo_us = 0;
	message.record = op->record;
	message.nitems = op->mark.nchains;
	tell(op, peer, &message, actions);
}

/* Asks for what is missing, and silent senders for how far they are. */
static void poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_NAK);
	uint32_t peer;
	uint32_t nlost = 0;

	while (mmc_actions_room(actions) &&
	       mmc_loss_ask(&op->loss, &op->claimed, now_ns, &peer,
			    message.runs, &message.nitems, &nlost))
		tell(op, peer, &message, actions);
	mmc_count(op->config.counters, MMC_COUNT_RX_LOST_CHUNKS, nlost);
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

static void poll_donor(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	struct mmc_message message = message_of(op, MMC_MESSAGE_ECHO);
	struct mmc_run run;
	uint32_t peer;

	if (mmc_actions_room(actions) &&
	    mmc_donor_echo(&op->donor, message.runs, &message.nitems))
		tell(op, MMC_PEER_ALL, &message, actions);
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
	mmc_op_renew(op, now_ns);
}

static bool quiescent(const struct mmc_op *op)
{
	return op->nplacing == 0 && op->nsending == 0;
}

/* Counts the stages' times, and what was received in them as the path's rate. */
static void measure(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_op_config *config = &op->config;

	mmc_count(config->counters, MMC_COUNT_MULTICAST_NS,
		  op->original_ns - op->stage_ns);
	mmc_count(config->counters, MMC_COUNT_REPAIR_NS,
		  now_ns - op->original_ns);
	if (!op->eager && config->nranks > 1)
		mmc_path_received(config->path,
				  config->block_bytes * (config->nranks - 1),
				  now_ns - op->stage_ns);
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
	mmc_op_step(op, op->copied ? MMC_OP_COMPLETE_WITH_COPY
				   : MMC_OP_COMPLETE);
	mmc_gate_join(&op->release);
	mmc_op_renew(op, now_ns);
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
		at_ns = mmc_min_u64(at_ns, mmc_patience_deadline(
						   &op->entering,
						   op->config.entry_timeout_ns));
	return at_ns;
}
