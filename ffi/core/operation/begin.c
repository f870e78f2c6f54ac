/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/begin.h"

#include "core/flow/train.h"
#include "core/operation/due.h"
#include "core/operation/parity.h"
#include "core/operation/repair.h"
#include "core/operation/repaired.h"
#include "support/bits.h"

/*
 * Returns the time from one batch of a chain to its next; 0 while the rate is a guess.
 */
static uint64_t batch_time_ns(const struct mmc_op *op)
{
	uint64_t nchunks =
		(uint64_t)op->schedule.batch_chunks * op->schedule.nchains;

	if (!op->config.path->measured)
		return 0;
	return mmc_path_time_ns(op->config.path,
				nchunks * op->config.chunk_bytes);
}

/* Returns how many chunks to send in one go, if the window allows. */
static uint32_t batch_chunks(const struct mmc_op *op)
{
	const struct mmc_op_config *config = &op->config;

	if (config->batch_chunks > 0)
		return config->batch_chunks;
	return mmc_train_chunks(config->path, config->train_chunks,
				config->chunk_bytes);
}

/* Returns how many chunks may be asked for at a time: the answers fill buffers, too. */
static uint32_t budget_chunks(const struct mmc_op *op)
{
	uint32_t window_bytes = op->record.terms.window_bytes;

	return window_bytes / op->config.chunk_bytes;
}

/* Returns the number of chains, or MMC_CHAINS_AUTO. */
static uint32_t nchains_of(const struct mmc_op *op)
{
	switch (op->mode) {
	case MMC_OP_EAGER:
		return op->layout.nsenders;
	case MMC_OP_CARRIED:
		return 1;
	default:
		return op->config.nchains;
	}
}

/*
 * Begins without multicast, which some rank does not get: neighbours pass blocks on. Or
 * the entry barrier's messages have brought all blocks already.
 */
static void begin_unicast(struct mmc_op *op, uint64_t now_ns)
{
	op->turn.next = op->own.nchunks;
	op->record.sent_chunks = op->own.nchunks;
	mmc_repair_expect_nothing(&op->repair, now_ns);
	if (op->mode == MMC_OP_UNICAST)
		mmc_count(op->config.counters, MMC_COUNT_UNICAST_EPOCHS, 1);
}

/* Accounts for chunks of its own that this rank sent before all had entered. */
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

/* Returns the window of the plan: parity takes its share of the agreed one. */
static uint32_t data_window(const struct mmc_op *op, bool coded,
			    uint32_t window_bytes)
{
	return coded ? mmc_grouping_window(op->config.code_data,
					   mmc_terms_parity(&op->record.terms),
					   window_bytes)
		     : window_bytes;
}

void mmc_op_begin_flow(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_terms *terms = &op->record.terms;
	/* This rank may have measured the first round trip since it began. */
	uint64_t srtt_ns = mmc_max_u64(mmc_min_u64(terms->srtt_us * MMC_US_NS,
						   MMC_PATH_SRTT_MAX_NS),
				       mmc_path_long_trip_ns(op->config.path));
	/*
	 * The chains are planned before the mode changes below: an eager operation has
	 * already sent its chunks by its own chains.
	 */
	uint32_t nchains = nchains_of(op);
	bool coded;

	mmc_count(op->config.counters, MMC_COUNT_ENTRY_NS,
		  now_ns - op->stage_ns);
	op->stage_ns = now_ns;
	if (!mmc_op_is_agreed(op)) {
		/* Others may not have found out yet when this rank has gone. */
		mmc_op_fail(op, MMC_EMISMATCH, MMC_PEER_NONE, true);
		return;
	}
	if (terms->deaf != 0 && op->mode != MMC_OP_CARRIED)
		op->mode = MMC_OP_UNICAST;
	coded = mmc_op_may_be_coded(&op->config) && mmc_op_is_to_be_coded(op);
	mmc_schedule_init(&op->schedule, op->schedule_memory, &op->layout,
			  nchains, data_window(op, coded, terms->window_bytes),
			  data_window(op, coded, terms->source_bytes));
	mmc_schedule_set_batch(&op->schedule, batch_chunks(op));
	begin_repair(op, srtt_ns, now_ns);
	mmc_watermark_init(&op->watermark, op->watermark_memory,
			   op->config.rank, &op->schedule);
	mmc_turn_init(&op->turn, op->config.rank, &op->schedule, now_ns);
	if (mmc_op_may_be_coded(&op->config) && op->mode == MMC_OP_STAGED) {
		op->config.path->coded = mmc_op_has_parity(op);
		op->config.path->agreed_srtt_ns = srtt_ns;
	}
	if (coded)
		mmc_op_begin_parity(op, now_ns);
	if (op->mode == MMC_OP_UNICAST || op->mode == MMC_OP_CARRIED)
		begin_unicast(op, now_ns);
	else
		resume_turn(op, now_ns);
	mmc_op_update_drained(op);
	op->heard.source = MMC_PEER_NONE;
	mmc_op_mark_advanced(op, now_ns);
	mmc_op_ask_soon(op, now_ns);
	mmc_op_step(op, MMC_OP_ALL_ENTERED);
	mmc_op_serve_early(op, now_ns);
}
