/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/parity.h"

#include "core/flow/forecast.h"
#include "core/operation/due.h"
#include "core/operation/repair.h"
#include "core/operation/repaired.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

/* ---- planning ------------------------------------------------------------ */

size_t mmc_op_parity_bytes(const struct mmc_op_config *config, uint32_t nchunks)
{
	return mmc_part_bytes(mmc_mender_bytes(nchunks)) +
	       mmc_pooling_bytes(nchunks, config->code_data, config->nranks);
}

/* What a repair takes for its messages, as the simulator shows. */
#define MESSAGES_NS (120 * MMC_US_NS)

/* Returns the round trip of a path. One that is not known yet is taken for long. */
static uint64_t own_trip_ns(const struct mmc_path *path)
{
	if (path->shortest_ns > 0)
		return path->srtt_ns;
	return path->trip_most_ns > 0 ? path->trip_most_ns
				      : MMC_PATH_SRTT_SHORT_NS;
}

/*
 * Returns the round trip that a repair is expected to take. It is the longest of any rank, since
 * all ranks wait for repairs by that one.
 */
static uint64_t expected_trip_ns(const struct mmc_path *path)
{
	return mmc_max_u64(own_trip_ns(path), path->agreed_srtt_ns);
}

/* Returns how long an operation's data is on the link. */
static uint64_t expected_data_ns(const struct mmc_op *op)
{
	const struct mmc_path *path = op->config.path;

	return mmc_rate_time_ns(path->link_bytes_per_s > 0
					? path->link_bytes_per_s
					: path->rate_bytes_per_s,
				op->layout.total_bytes);
}

/* Returns what this rank's path suggests for an operation. */
static struct mmc_forecast forecast_of(const struct mmc_op *op)
{
	const struct mmc_path *path = op->config.path;
	uint64_t srtt_ns = expected_trip_ns(path);
	uint32_t nchunks = op->layout.nchunks;
	uint64_t data_ns = expected_data_ns(op);
	uint64_t trip_ns = srtt_ns + MESSAGES_NS +
			   mmc_allowance_ns(srtt_ns, path->late_ns);

	return (struct mmc_forecast){
		.data_ns = data_ns,
		.trip_ns = trip_ns,
		.block_chunks = (uint32_t)(op->layout.largest_bytes /
						   op->config.chunk_bytes +
					   1),
		.tail_chunks =
			trip_ns < data_ns
				? (uint32_t)(nchunks * (trip_ns / MMC_US_NS) /
					     (data_ns / MMC_US_NS + 1)) +
					  1
				: nchunks,
		.nreceivers = op->config.nranks - 1,
		.loss = mmc_losses_share(&path->losses, op->config.nranks - 1),
		.run_chunks = mmc_losses_run_chunks(&path->losses),
	};
}

/* Returns whether this rank receives chunks: only a rank that does learns what is lost. */
static bool receives(const struct mmc_op *op)
{
	const struct mmc_block own =
		mmc_layout_block(&op->layout, op->config.rank);

	return own.nbytes < op->layout.total_bytes;
}

/* Returns what this rank wants of the code, as the term `parity` says it. */
static uint32_t wanted_parity(const struct mmc_op *op)
{
	const struct mmc_op_config *config = &op->config;
	struct mmc_forecast forecast;
	uint32_t parity;

	switch (config->reliability) {
	case MMC_RELIABILITY_AUTO:
		if (!receives(op))
			return 0;
		forecast = forecast_of(op);
		parity = mmc_forecast_parity(&forecast, config->code_data,
					     config->code_parity);
		return parity == 0 ? 0 : parity + 1;
	case MMC_RELIABILITY_DECIDE_REPEAT:
		return MMC_PARITY_DECIDED;
	case MMC_RELIABILITY_DECIDE_CODE:
		return MMC_PARITY_DECIDED + config->code_parity + 1;
	default:
		return config->code_parity + 1;
	}
}

void mmc_op_init_parity(struct mmc_op *op, uint8_t *memory)
{
	uint32_t nchunks = op->layout.nchunks;
	uint8_t *part;

	part = mmc_part_take(&memory, mmc_mender_bytes(nchunks));
	op->mender =
		mmc_mender_init(part, &op->layout, &op->claimed, &op->present);
	op->pooling = mmc_pooling_init(memory, nchunks, op->config.code_data,
				       op->config.nranks);
	op->entered_ns = op->stage_ns;
	mmc_terms_want(&op->record.terms, wanted_parity(op));
}

bool mmc_op_is_to_be_coded(const struct mmc_op *op)
{
	uint64_t largest =
		op->layout.largest_bytes / op->config.chunk_bytes + 1;

	return op->mode == MMC_OP_STAGED && mmc_terms_code(&op->record.terms) &&
	       mmc_terms_parity(&op->record.terms) <= op->config.code_parity &&
	       largest / op->config.code_data < MMC_GROUPS_MAX;
}

/* Lets the turn go on to the end of the span that it is in. */
static void set_stop(struct mmc_op *op)
{
	if (op->mender->grouping.parity_chunks > 0 &&
	    op->turn.next < op->turn.nchunks)
		op->turn.stop = mmc_grouping_end(
			&op->mender->grouping, op->turn.nchunks, op->turn.next);
}

/* Records that a parity chunk has arrived, before which its whole span was sent. */
static void hear_parity(struct mmc_op *op, const struct mmc_parity *parity,
			uint64_t now_ns)
{
	const struct mmc_block block =
		mmc_layout_block(&op->layout, parity->owner);
	const struct mmc_group group = mmc_grouping_get(
		&op->mender->grouping, block.nchunks, parity->group);

	mmc_loss_hear_parity(&op->repair.loss, &op->claimed, &block,
			     &(struct mmc_parity_heard){
				     .end = group.end,
				     .last = group.last &&
					     parity->row + 1 >= group.nparity,
			     },
			     now_ns);
}

/*
 * Judges early parity. Some of it may have been sent to answer NAKs of other ranks, but that
 * parity follows its span, too.
 */
static void judge_early(struct mmc_op *op, uint64_t now_ns)
{
	struct mmc_parity parity;

	for (uint32_t i = 0; i < op->mender->nslots; i++)
		if (mmc_mender_judge(op->mender, i, &parity))
			hear_parity(op, &parity, now_ns);
}

void mmc_op_begin_parity(struct mmc_op *op, uint64_t now_ns)
{
	struct mmc_grouping *grouping = &op->mender->grouping;

	mmc_count(op->config.counters, MMC_COUNT_CODED_EPOCHS, 1);
	grouping->data_chunks = op->config.code_data;
	grouping->parity_chunks = mmc_terms_parity(&op->record.terms);
	mmc_grouping_set_depth(grouping, op->schedule.window_chunks);
	op->repair.loss.grouping = *grouping;
	op->repair.loss.spared = &op->mender->spared;
	op->pooling->grouping = *grouping;
	op->repair.repairer.pools = op->repair.policy->gathers;
	set_stop(op);
	judge_early(op, now_ns);
}

/* ---- sending ------------------------------------------------------------- */

struct mmc_group mmc_op_own_group(const struct mmc_op *op, uint32_t group)
{
	const struct mmc_run own = { op->own.first, op->own.nchunks };

	return mmc_grouping_get_in(&op->mender->grouping, own, group);
}

struct mmc_run mmc_op_unsent_parity(const struct mmc_op *op)
{
	struct mmc_run unsent = { .first = op->ncoded };

	if (op->state == MMC_OP_FLOW && mmc_op_is_coded(op) &&
	    op->mender->grouping.parity_chunks > 0)
		unsent.count = mmc_grouping_count(&op->mender->grouping,
						  op->own.nchunks) -
			       op->ncoded;
	return unsent;
}

struct mmc_header mmc_op_parity_header(const struct mmc_op *op,
				       const struct mmc_action *action,
				       uint32_t i)
{
	return (struct mmc_header){
		.channel = op->config.channel,
		.epoch = op->config.epoch,
		.index = MMC_INDEX_PARITY |
			 (action->repair ? MMC_INDEX_ON_REQUEST : 0) |
			 action->first << MMC_INDEX_GROUP_SHIFT |
			 (action->run.first + i),
	};
}

void mmc_op_send_parity(struct mmc_op *op, struct mmc_actions *actions)
{
	uint32_t ngroups =
		mmc_grouping_count(&op->mender->grouping, op->turn.next);
	uint32_t nsent = 0;

	while (op->ncoded < ngroups && mmc_actions_room(actions) &&
	       nsent < op->schedule.batch_chunks) {
		const struct mmc_group group = mmc_op_own_group(op, op->ncoded);
		struct mmc_action *action =
			mmc_actions_add(actions, MMC_ACTION_PARITY, op);

		action->peer = MMC_PEER_ALL;
		action->first = op->ncoded++;
		action->run = (struct mmc_run){ .count = group.nparity };
		op->nsending += group.nparity;
		nsent += group.nparity;
	}
	mmc_count(op->config.counters, MMC_COUNT_PARITY_SENT, nsent);
	if (op->ncoded == ngroups)
		set_stop(op);
}

bool mmc_op_poll_pooling(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_action *action;
	struct mmc_run rows;
	uint32_t group;

	op->pooling->nsent = op->turn.next;
	if (!mmc_repairer_pools(&op->repair.repairer) ||
	    !mmc_pooling_next(op->pooling, &op->repair.repairer,
			      MMC_BATCH_CHUNKS_MAX, now_ns, &group, &rows))
		return false;
	action = mmc_actions_add(actions, MMC_ACTION_PARITY, op);
	action->peer = MMC_PEER_ALL;
	action->repair = true;
	action->first = group;
	action->run = rows;
	op->nsending += rows.count;
	mmc_count(op->config.counters, MMC_COUNT_PARITY_SENT, rows.count);
	return true;
}

/* ---- receiving ----------------------------------------------------------- */

int mmc_op_on_parity(struct mmc_op *op, uint32_t source, uint32_t index,
		     size_t payload_bytes, uint64_t now_ns)
{
	const struct mmc_parity parity = {
		.owner = source,
		.group = (index & (MMC_INDEX_ON_REQUEST - 1)) >>
			 MMC_INDEX_GROUP_SHIFT,
		.row = index & MMC_INDEX_ROW_MASK,
	};
	int slot;

	if (op->state == MMC_OP_ENTRY && mmc_op_may_be_coded(&op->config))
		return mmc_mender_keep_early(op->mender, op->config.code_data,
					     parity, payload_bytes);
	if (!mmc_op_is_coded(op) || op->state != MMC_OP_FLOW)
		return MMC_UNKEPT_USELESS;
	slot = mmc_mender_keep(op->mender, parity, payload_bytes);
	if (slot == MMC_UNKEPT_FOREIGN)
		return slot;
	if (index & MMC_INDEX_ON_REQUEST)
		mmc_loss_helped(&op->repair.loss, now_ns);
	else
		hear_parity(op, &parity, now_ns);
	if (slot >= 0)
		mmc_op_mark_advanced(op, now_ns);
	mmc_op_wake(op);
	return slot;
}

/* Claims what is missing of a group, and has it mended. */
static void mend(struct mmc_op *op, struct mmc_parity parity, uint64_t now_ns,
		 struct mmc_actions *actions)
{
	const struct mmc_block block =
		mmc_layout_block(&op->layout, parity.owner);
	struct mmc_action *action =
		mmc_actions_add(actions, MMC_ACTION_MEND, op);
	struct mmc_mend mend;

	action->peer = parity.owner;
	action->first = parity.group;
	mmc_mender_describe(op->mender, parity, &mend);
	for (uint32_t i = 0; i < mend.nlost; i++) {
		uint32_t chunk = mend.first + mend.columns[i] * mend.stride;

		mmc_bitmap_test_and_set(&op->claimed, chunk);
		op->nplacing++;
		mmc_op_note_repaired(op, &block, chunk, now_ns);
	}
	mmc_count(op->config.counters, MMC_COUNT_GROUPS_MENDED, 1);
	mmc_count(op->config.counters, MMC_COUNT_PARITY_USED, mend.nlost);
	mmc_op_mark_advanced(op, now_ns);
}

void mmc_op_poll_mends(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	struct mmc_mender *mender = op->mender;
	struct mmc_parity parity;

	if (!mender->ready ||
	    (op->config.path->backlog && !op->config.mends_aside &&
	     mender->nheld < mender->nslots / 2))
		return;
	while (mmc_actions_room(actions) && mmc_mender_next(mender, &parity))
		mend(op, parity, now_ns, actions);
}

void mmc_op_describe_mend(const struct mmc_op *op,
			  const struct mmc_action *action,
			  struct mmc_mend *mend)
{
	mmc_mender_describe(op->mender,
			    (struct mmc_parity){ .owner = action->peer,
						 .group = action->first },
			    mend);
}

void mmc_op_on_mended(struct mmc_op *op, const struct mmc_action *action)
{
	const struct mmc_parity parity = { .owner = action->peer,
					   .group = action->first };
	struct mmc_mend mend;

	mmc_mender_describe(op->mender, parity, &mend);
	mmc_mender_end(op->mender, parity);
	for (uint32_t i = 0; i < mend.nlost; i++)
		mmc_op_on_placed(op,
				 mend.first + mend.columns[i] * mend.stride);
}
