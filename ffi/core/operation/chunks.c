/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of op.h that takes chunks, one by one or in runs. A run of chunks
 * costs hardly more than one chunk, and leaves the same state as its chunks would.
 */
#include "core/operation/due.h"
#include "core/operation/liveness.h"
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

/* Accounts for a chunk of `block` that was claimed as a repair or by a read. */
static void note_repaired(struct mmc_op *op, const struct mmc_block *block,
			  uint32_t chunk, uint64_t now_ns)
{
	uint32_t chain = mmc_schedule_chain(&op->schedule, block);
	struct mmc_sequence *sequence =
		mmc_chain_sequence(&op->repair.loss.chains[chain],
				   mmc_schedule_turn(&op->schedule, block));

	mmc_loss_on_claimed(&op->repair.loss, chain, sequence,
			    chunk - block->first, chunk, now_ns);
	mmc_watermark_drain(&op->watermark, chain,
			    op->repair.loss.chains[chain].ndrained);
	if (op->mode != MMC_OP_UNICAST &&
	    mmc_bitmap_test(&op->repair.loss.lost, chunk))
		mmc_count(op->config.counters, MMC_COUNT_RX_REPAIRED_CHUNKS, 1);
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
	note_repaired(op, &block, chunk, now_ns);
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
__attribute__((noinline)) static void change_heard(struct mmc_op *op,
						   uint32_t source)
{
	struct mmc_heard *heard = &op->heard;

	MMC_ASSERT(source < op->config.nranks);
	heard->source = source;
	heard->block = mmc_layout_block(&op->layout, source);
	heard->sequence = NULL;
	if (!mmc_op_has_begun(op))
		return;
	heard->chain = mmc_schedule_chain(&op->schedule, &heard->block);
	heard->turn = mmc_schedule_turn(&op->schedule, &heard->block);
}

/* Wakes the operation if it waits for what was just heard by multicast. */
static inline void wake_if_heard(struct mmc_op *op)
{
	mmc_op_wake_if_stirred(op);
	if (mmc_turn_listens(&op->turn, &op->repair.loss, op->heard.chain))
		mmc_op_wake(op);
}

/* Wakes the operation if it waits for chunks that have become present. */
static inline void wake_if_placed(struct mmc_op *op)
{
	if (op->state != MMC_OP_FLOW || op->npresent == op->layout.nchunks ||
	    op->repair.repairer.naks.count > 0)
		mmc_op_wake(op);
}

enum mmc_verdict mmc_op_on_chunk(struct mmc_op *op, uint32_t source,
				 uint32_t index, size_t payload_bytes,
				 uint64_t now_ns)
{
	struct mmc_heard *heard = &op->heard;
	struct mmc_chain *chain;
	enum mmc_verdict verdict;
	uint32_t place;

	if (index & MMC_INDEX_REPAIR)
		return on_repair(op, source, index & MMC_INDEX_MASK,
				 payload_bytes, now_ns);
	if (source != heard->source)
		change_heard(op, source);
	place = index - heard->block.first;
	if (place >= heard->block.nchunks)
		return MMC_VERDICT_FOREIGN;
	verdict = claim(op, &heard->block, place, payload_bytes, now_ns);
	if (verdict == MMC_VERDICT_DUPLICATE)
		note_late(op, index);
	if (verdict != MMC_VERDICT_PLACE || op->state == MMC_OP_ENTRY)
		return verdict;
	chain = &op->repair.loss.chains[heard->chain];
	chain->nheard++;
	if (heard->sequence == NULL || heard->sequence->turn != heard->turn)
		heard->sequence = mmc_loss_follow(
			&op->repair.loss, &op->claimed, &heard->block, now_ns);
	mmc_loss_hear(&op->repair.loss, chain, heard->sequence, place, now_ns);
	mmc_loss_on_claimed(&op->repair.loss, heard->chain, heard->sequence,
			    place, index, now_ns);
	mmc_watermark_drain(&op->watermark, heard->chain, chain->ndrained);
	wake_if_heard(op);
	return verdict;
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
		note_repaired(op, &block, chunk, now_ns);
	return verdict;
}

void mmc_op_on_placed(struct mmc_op *op, uint32_t chunk)
{
	MMC_ASSERT(op->nplacing > 0);
	op->nplacing--;
	op->npresent++;
	mmc_bitmap_publish(&op->present, chunk);
	mmc_repairer_fresh(&op->repair.repairer);
	wake_if_placed(op);
}

/* ---- runs --------------------------------------------------------------- */

/* Accounts for a run of the sender that was heard last, from its chunk `place` on. */
static void hear_run(struct mmc_op *op, struct mmc_run run, uint32_t place,
		     uint64_t now_ns)
{
	struct mmc_loss *loss = &op->repair.loss;
	struct mmc_heard *heard = &op->heard;
	struct mmc_chain *chain = &loss->chains[heard->chain];

	chain->nheard += run.count;
	if (heard->sequence == NULL || heard->sequence->turn != heard->turn)
		heard->sequence = mmc_loss_follow(loss, &op->claimed,
						  &heard->block, now_ns);
	mmc_loss_hear_run(loss, chain, heard->sequence, place, run.count,
			  now_ns);
	mmc_loss_on_claimed_run(loss, heard->chain, heard->sequence, place, run,
				now_ns);
	mmc_watermark_drain_run(&op->watermark, heard->chain, chain->ndrained);
	wake_if_heard(op);
}

bool mmc_op_on_run(struct mmc_op *op, uint32_t source, struct mmc_run run,
		   size_t last_bytes, uint64_t now_ns)
{
	const struct mmc_block *block = &op->heard.block;
	uint32_t place;

	if (source != op->heard.source)
		change_heard(op, source);
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
		hear_run(op, run, place, now_ns);
	return true;
}

void mmc_op_on_run_placed(struct mmc_op *op, struct mmc_run run)
{
	MMC_ASSERT(op->nplacing >= run.count);
	op->nplacing -= run.count;
	op->npresent += run.count;
	mmc_bitmap_publish_run(&op->present, run);
	mmc_repairer_fresh(&op->repair.repairer);
	wake_if_placed(op);
}
