/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of op.h that takes chunks, one by one or in runs. A run of chunks
 * costs hardly more than one chunk, and leaves the same state as its chunks would.
 */
#include "core/operation/due.h"
#include "core/operation/liveness.h"
#include "core/operation/parity.h"
#include "core/operation/repaired.h"
#include "core/operation/silence.h"
#include "support/assert.h"

/*
 * Claims chunk number `place`, from 0, of `block`, if its payload has the right length
 * and it is not claimed yet. Returns the verdict on it.
 */
static inline enum mmc_verdict claim(struct mmc_op *op,
				     const struct mmc_block *block,
				     uint32_t place, size_t payload_bytes,
				     uint64_t now_ns)
{
	uint32_t chunk = block->first + place;

	if (payload_bytes !=
	    mmc_layout_block_payload(&op->layout, block, place))
		return MMC_VERDICT_FOREIGN;
	if (op->state > MMC_OP_RELEASE ||
	    mmc_bitmap_test_and_set(&op->claimed, chunk)) {
		mmc_count(op->config.counters, MMC_COUNT_RX_DUPLICATE_CHUNKS,
			  1);
		return MMC_VERDICT_DUPLICATE;
	}
	op->nplacing++;
	mmc_op_mark_advanced(op, now_ns);
	return MMC_VERDICT_PLACE;
}

/*
 * Takes a chunk that was sent again, by its owner or a rank that this one may ask for
 * it. It is not inlined, since it would slow down the path of all other chunks.
 */
__attribute__((noinline, cold)) static enum mmc_verdict
on_repair(struct mmc_op *op, uint32_t source, uint32_t chunk,
	  size_t payload_bytes, uint64_t now_ns)
{
	enum mmc_verdict verdict;
	struct mmc_block block;
	uint32_t owner;

	if (chunk >= op->layout.nchunks)
		return MMC_VERDICT_FOREIGN;
	owner = mmc_layout_owner(&op->layout, chunk);
	if (!mmc_repair_accepts(&op->repair, source, owner))
		return MMC_VERDICT_FOREIGN;
	block = mmc_layout_block(&op->layout, owner);
	verdict = claim(op, &block, chunk - block.first, payload_bytes, now_ns);
	if (verdict != MMC_VERDICT_PLACE || !mmc_op_has_begun(op))
		return verdict;
	mmc_op_wake(op);
	mmc_op_note_repaired(op, &block, chunk, now_ns);
	mmc_loss_helped(&op->repair.loss, now_ns);
	return verdict;
}

/* Records that a chunk arrives by multicast that was taken for lost too early. */
__attribute__((noinline, cold)) static void note_late(struct mmc_op *op,
						      uint32_t chunk)
{
	if (!mmc_op_has_begun(op) ||
	    !mmc_bitmap_test(&op->repair.loss.lost, chunk))
		return;
	mmc_op_wake(op);
	mmc_path_late(op->config.path);
	op->repair.loss.chains[op->heard.chain].nheard++;
}

/*
 * Looks up in `heard` what is needed of `source`, which is another sender than before.
 */
__attribute__((noinline)) static void
change_heard(struct mmc_op *op, uint32_t source, uint64_t now_ns)
{
	struct mmc_heard *heard = &op->heard;

	MMC_ASSERT(source < op->config.nranks);
	if (mmc_op_may_be_coded(&op->config) && op->first_ns == 0)
		op->first_ns = now_ns;
	heard->source = source;
	heard->block = mmc_layout_block(&op->layout, source);
	heard->sequence = NULL;
	if (!mmc_op_has_begun(op))
		return;
	heard->chain = mmc_schedule_chain(&op->schedule, &heard->block);
	heard->turn = mmc_schedule_turn(&op->schedule, &heard->block);
}

/* Wakes the operation if it waits for a chunk of this chain, which has arrived. */
static inline void wake_if_heard(struct mmc_op *op, uint32_t chain)
{
	if (mmc_turn_listens(&op->turn, &op->repair.loss, chain))
		mmc_op_wake(op);
	mmc_op_wake_if_stirred(op);
}

/*
 * Records that the chunks of `run` are present: they may complete a block that the user
 * waits for, or be of a group to be mended. Most operations have neither.
 */
__attribute__((noinline, cold)) static void note_placed(struct mmc_op *op,
							struct mmc_run run)
{
	if (mmc_config_is_partial(&op->config))
		mmc_landing_add(&op->landing, run);
	if (!mmc_op_is_coded(op) || op->mender->nheld == 0)
		return;
	mmc_mender_placed(op->mender, run);
	if (op->mender->ready)
		mmc_op_wake(op);
}

/* Has chunks that have become present repaired, if others want them, or completes. */
static inline void use_placed(struct mmc_op *op)
{
	if (op->repair.repairer.naks.count > 0)
		mmc_repairer_fresh(&op->repair.repairer);
	else if (op->state == MMC_OP_FLOW && op->npresent < op->layout.nchunks)
		return;
	mmc_op_wake(op);
}

/*
 * Accounts for a run of the sender that was heard last, which begins with chunk `place`
 * of its block.
 */
static inline void hear(struct mmc_op *op, struct mmc_run run, uint32_t place,
			uint64_t now_ns)
{
	struct mmc_loss *loss = &op->repair.loss;
	struct mmc_heard *heard = &op->heard;
	uint32_t number = heard->chain;
	struct mmc_chain *chain = &loss->chains[number];
	struct mmc_sequence *sequence = heard->sequence;

	chain->nheard += run.count;
	if (sequence == NULL || sequence->turn != heard->turn)
		sequence = heard->sequence = mmc_loss_follow(
			loss, &op->claimed, &heard->block, now_ns);
	mmc_loss_hear(loss, chain, sequence, place, run.count, now_ns);
	mmc_loss_on_claimed(loss, number, sequence, place, run, now_ns);
	mmc_watermark_drain_run(&op->watermark, number, chain->ndrained);
	wake_if_heard(op, number);
}

/* Takes any chunk: see mmc_op_on_chunk(). */
__attribute__((noinline)) static enum mmc_verdict
take(struct mmc_op *op, uint32_t source, uint32_t index, size_t payload_bytes,
     uint64_t now_ns)
{
	const struct mmc_block *block = &op->heard.block;
	enum mmc_verdict verdict;
	uint32_t place;

	if (index & MMC_INDEX_REPAIR)
		return on_repair(op, source, index & MMC_INDEX_MASK,
				 payload_bytes, now_ns);
	if (source != op->heard.source)
		change_heard(op, source, now_ns);
	place = index - block->first;
	if (place >= block->nchunks)
		return MMC_VERDICT_FOREIGN;
	verdict = claim(op, block, place, payload_bytes, now_ns);
	if (verdict == MMC_VERDICT_DUPLICATE)
		note_late(op, index);
	else if (verdict == MMC_VERDICT_PLACE && op->state != MMC_OP_ENTRY)
		hear(op, (struct mmc_run){ .first = index, .count = 1 }, place,
		     now_ns);
	return verdict;
}

/*
 * Returns whether a datagram carries the chunk that comes next of the sender that was
 * heard last, and taking it means only to count it: it is neither the last of its block
 * nor the last that is missing of it, and nothing was asked for.
 */
static inline bool is_next(const struct mmc_op *op, uint32_t source,
			   uint32_t index, size_t payload_bytes)
{
	const struct mmc_heard *heard = &op->heard;
	const struct mmc_sequence *sequence = heard->sequence;

	return source == heard->source && op->state == MMC_OP_FLOW &&
	       sequence != NULL && sequence->turn == heard->turn &&
	       index - sequence->first == sequence->end &&
	       sequence->end + 1 < sequence->nchunks && sequence->nleft > 1 &&
	       payload_bytes == op->layout.chunk_bytes &&
	       op->repair.loss.waited_chunks == 0;
}

/* Counts such a chunk, which has been claimed. Leaves the same state as hear() would. */
static inline void count_next(struct mmc_op *op, uint64_t now_ns)
{
	uint32_t number = op->heard.chain;
	struct mmc_sequence *sequence = op->heard.sequence;
	struct mmc_chain *chain = &op->repair.loss.chains[number];

	op->repair.loss.heard_ns = now_ns;
	sequence->heard_ns = now_ns;
	sequence->nleft--;
	sequence->end++;
	chain->nheard++;
	chain->ndrained++;
	chain->seen = mmc_max_u32(chain->seen, sequence->start + sequence->end);
	mmc_watermark_drain(&op->watermark, number, chain->ndrained);
	wake_if_heard(op, number);
}

enum mmc_verdict mmc_op_on_chunk(struct mmc_op *op, uint32_t source,
				 uint32_t index, size_t payload_bytes,
				 uint64_t now_ns)
{
	if (!is_next(op, source, index, payload_bytes) ||
	    mmc_bitmap_test_and_set(&op->claimed, index))
		return take(op, source, index, payload_bytes, now_ns);
	op->nplacing++;
	mmc_op_mark_advanced(op, now_ns);
	count_next(op, now_ns);
	return MMC_VERDICT_PLACE;
}

enum mmc_verdict mmc_op_on_fetched(struct mmc_op *op, uint32_t chunk,
				   uint64_t now_ns)
{
	uint32_t owner = mmc_layout_owner(&op->layout, chunk);
	const struct mmc_block block = mmc_layout_block(&op->layout, owner);
	uint32_t place = chunk - block.first;
	uint32_t payload_bytes =
		mmc_layout_block_payload(&op->layout, &block, place);
	enum mmc_verdict verdict =
		claim(op, &block, place, payload_bytes, now_ns);

	mmc_count(op->config.counters, MMC_COUNT_READ_CHUNKS, 1);
	mmc_count(op->config.counters, MMC_COUNT_READ_BYTES, payload_bytes);
	mmc_op_wake(op);
	if (verdict == MMC_VERDICT_PLACE)
		mmc_op_note_repaired(op, &block, chunk, now_ns);
	return verdict;
}

void mmc_op_on_placed(struct mmc_op *op, uint32_t chunk)
{
	MMC_ASSERT(op->nplacing > 0);
	op->nplacing--;
	op->npresent++;
	mmc_bitmap_publish(&op->present, chunk);
	use_placed(op);
	/* This comes last, so that operations without it need not save registers. */
	if (op->follows_placed)
		note_placed(op, (struct mmc_run){ .first = chunk, .count = 1 });
}

/* ---- runs --------------------------------------------------------------- */

bool mmc_op_on_run(struct mmc_op *op, uint32_t source, struct mmc_run run,
		   size_t last_bytes, uint64_t now_ns)
{
	const struct mmc_block *block = &op->heard.block;
	uint32_t place;

	if (source != op->heard.source)
		change_heard(op, source, now_ns);
	place = run.first - block->first;
	if (op->state > MMC_OP_RELEASE || place >= block->nchunks ||
	    run.count > block->nchunks - place ||
	    last_bytes != mmc_layout_block_payload(&op->layout, block,
						   place + run.count - 1) ||
	    mmc_bitmap_count_run(&op->claimed, run) > 0)
		return false;
	mmc_bitmap_set_run(&op->claimed, run);
	op->nplacing += run.count;
	mmc_op_mark_advanced(op, now_ns);
	if (op->state != MMC_OP_ENTRY)
		hear(op, run, place, now_ns);
	return true;
}

void mmc_op_on_run_placed(struct mmc_op *op, struct mmc_run run)
{
	MMC_ASSERT(op->nplacing >= run.count);
	op->nplacing -= run.count;
	op->npresent += run.count;
	mmc_bitmap_publish_run(&op->present, run);
	use_placed(op);
	if (op->follows_placed)
		note_placed(op, run);
}
