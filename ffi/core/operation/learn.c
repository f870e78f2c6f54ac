/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/learn.h"

#include "core/operation/parity.h"
#include "support/bits.h"

static uint64_t received_bytes(const struct mmc_op *op)
{
	return op->layout.total_bytes - op->own.nbytes;
}

/* Returns the rate of this rank in the direction in which it had more bytes. */
static uint64_t rate_of(const struct mmc_op *op, uint64_t now_ns)
{
	uint64_t nbytes = mmc_max_u64(received_bytes(op), op->own.nbytes);
	uint64_t time_us = (now_ns - op->stage_ns) / MMC_US_NS + 1;

	return nbytes / time_us * 1000000;
}

/*
 * Measures the rate by what this rank has received or, if it has sent more, as the root
 * of a Bcast has, by what it has sent.
 */
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

/*
 * Returns how many chunks of this rank's block the operation counts for. A rank with a small
 * block counts as many as an average one has, so that the windows of all ranks are adapted
 * after the same operations.
 */
static inline uint32_t sample_chunks(const struct mmc_op *op,
				     const struct mmc_repair_losses *losses)
{
	return mmc_max_u32(losses->block_chunks,
			   op->layout.nchunks / op->layout.nsenders);
}

/*
 * Adapts the window. On a long path most of it is on its way, and not in queues, so there it
 * doubles until it holds that.
 */
static void adapt_window(const struct mmc_op *op,
			 const struct mmc_repair_losses *losses,
			 uint64_t now_ns)
{
	struct mmc_path *path = op->config.path;
	const struct mmc_window_sample sample = {
		.window_bytes = op->record.terms.window_bytes,
		.chunk_bytes = op->config.chunk_bytes,
		.nchunks = sample_chunks(op, losses),
		.nlost = losses->nlost,
		.nshared = losses->nshared,
		.rate_bytes_per_s = rate_of(op, now_ns),
	};

	if (!mmc_path_outgrows(path, sample.rate_bytes_per_s,
			       sample.window_bytes) ||
	    sample.nlost > sample.nchunks / MMC_WINDOW_HARDLY_PART ||
	    !mmc_window_widen(&path->window, sample.window_bytes,
			      op->layout.total_bytes))
		mmc_window_learn(&path->window, &sample);
}

/*
 * Learns how many of the chunks that others have sent were lost: those that were asked for
 * or mended, but for those that came late.
 */
static void learn_losses(const struct mmc_op *op, uint32_t sent_chunks)
{
	struct mmc_path *path = op->config.path;
	struct mmc_losses losses = { .sent_chunks = sent_chunks };

	losses.lost_chunks = mmc_bitmap_count_union(
		&op->repair.loss.lost, &op->mender->spared, &losses.nruns);
	losses.lost_chunks -= mmc_min_u32(losses.lost_chunks, path->nlate);
	losses.nruns = mmc_min_u32(losses.nruns, losses.lost_chunks);
	mmc_losses_add(&path->losses, &losses);
}

/*
 * Learns how long a round trip takes at most. Others send chunks only after they have heard
 * that this rank has entered, so the first chunk arrives a round trip later at the earliest.
 */
static void learn_trip(const struct mmc_op *op)
{
	struct mmc_path *path = op->config.path;

	if (op->first_ns == 0)
		return;
	if (path->trip_most_ns == 0)
		path->trip_most_ns = MMC_PATH_SRTT_SHORT_NS;
	path->trip_most_ns = mmc_min_u64(path->trip_most_ns,
					 op->first_ns - op->entered_ns + 1);
}

/*
 * Learns the rate at which chunks and parity have followed the first chunk. An operation with
 * lost chunks is left out, since requests delay its last chunks; so is one whose chunks were
 * all received at one time.
 */
static void learn_link(const struct mmc_op *op)
{
	const struct mmc_grouping *grouping = &op->mender->grouping;
	struct mmc_path *path = op->config.path;
	uint64_t nbytes = received_bytes(op);
	uint64_t time_ns = op->repair.loss.heard_ns - op->first_ns;
	uint64_t bytes_per_s;

	if (op->first_ns == 0 || op->repair.loss.heard_ns <= op->first_ns ||
	    op->repair.loss.nlost > 0 || nbytes <= op->config.chunk_bytes ||
	    nbytes > UINT64_MAX / MMC_MS_NS / 2)
		return;
	if (mmc_op_is_coded(op))
		nbytes += nbytes * grouping->parity_chunks /
			  grouping->data_chunks;
	nbytes -= op->config.chunk_bytes;
	bytes_per_s = nbytes * MMC_MS_NS / time_ns * (MMC_S_NS / MMC_MS_NS);
	if (path->link_bytes_per_s > 0)
		bytes_per_s =
			mmc_rate_smooth(path->link_bytes_per_s, bytes_per_s);
	path->link_bytes_per_s = bytes_per_s;
}

void mmc_op_learn(struct mmc_op *op, uint64_t now_ns)
{
	const struct mmc_op_config *config = &op->config;
	const struct mmc_repair_losses losses =
		op->repair.policy->losses(&op->repair, op->own.nchunks);
	/*
	 * Chunks that arrive before the stream is created here are dropped, but not
	 * lost.
	 */
	bool begins_stream = op->mode == MMC_OP_EAGER && config->epoch == 1;
	const struct mmc_reception reception = {
		.begin_ns = op->stage_ns,
		.end_ns = now_ns,
		.expected_chunks = op->layout.nchunks - op->own.nchunks,
		.heard_chunks = mmc_loss_heard(&op->repair.loss),
		.unheard = mmc_loss_unheard(&op->repair.loss),
		.lag_ns = config->control_is_reliable ? MMC_PATH_LAG_RELIABLE_NS
						      : 0,
	};

	if (op->mode == MMC_OP_CARRIED) {
		/* Nothing was multicast, so nothing can be learnt of it. */
		op->stage_ns = now_ns;
		return;
	}
	mmc_count(config->counters, MMC_COUNT_MULTICAST_NS,
		  op->repair.loss.heard_ns - op->stage_ns);
	mmc_count(config->counters, MMC_COUNT_REPAIR_NS,
		  now_ns - op->repair.loss.heard_ns);
	mmc_path_note_losses(config->path,
			     losses.nlost > 0 || op->repair.loss.nlost > 0);
	if (mmc_op_may_be_coded(config) && op->mode != MMC_OP_UNICAST &&
	    !begins_stream)
		learn_losses(op, reception.expected_chunks);
	mmc_path_settle(config->path);
	if (op->mode == MMC_OP_STAGED)
		adapt_window(op, &losses, now_ns);
	if (op->mode != MMC_OP_UNICAST && !begins_stream)
		mmc_path_heard(config->path, &reception);
	if (op->mode == MMC_OP_STAGED)
		measure_rate(op, now_ns);
	if (op->mode == MMC_OP_STAGED && mmc_op_may_be_coded(config)) {
		learn_trip(op);
		learn_link(op);
	}
	op->stage_ns = now_ns;
}

void mmc_op_learn_last(const struct mmc_op *op)
{
	const struct mmc_repair_losses losses =
		op->repair.policy->losses(&op->repair, op->own.nchunks);
	const struct mmc_window_sample sample = {
		.nchunks = sample_chunks(op, &losses),
		.nlost = losses.nlost,
	};
	struct mmc_window *window = &op->config.path->window;

	if (op->mode == MMC_OP_STAGED && window->widening > 0)
		mmc_window_check_widening(window, &sample);
}

void mmc_op_learn_delay(struct mmc_op *op, uint64_t delay_ns, uint64_t time_ns)
{
	/* On a long path, the rate and the round trip determine the window. */
	if (op->mode != MMC_OP_STAGED || time_ns == 0 ||
	    mmc_path_is_long(op->config.path))
		return;
	mmc_window_note_wait(
		&op->config.path->window, op->record.terms.window_bytes,
		op->layout.total_bytes,
		(uint32_t)(delay_ns / mmc_max_u64(1, time_ns / 100)));
}
