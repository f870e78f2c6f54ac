/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/repaired.h"

void mmc_op_note_repaired(struct mmc_op *op, const struct mmc_block *block,
			  uint32_t chunk, uint64_t now_ns)
{
	uint32_t chain = mmc_schedule_chain(&op->schedule, block);
	struct mmc_sequence *sequence =
		mmc_chain_sequence(&op->repair.loss.chains[chain],
				   mmc_schedule_turn(&op->schedule, block));

	mmc_loss_on_claimed(&op->repair.loss, chain, sequence,
			    chunk - block->first,
			    (struct mmc_run){ .first = chunk, .count = 1 },
			    now_ns);
	mmc_watermark_drain(&op->watermark, chain,
			    op->repair.loss.chains[chain].ndrained);
	if (op->mode != MMC_OP_UNICAST &&
	    mmc_bitmap_test(&op->repair.loss.lost, chunk))
		mmc_count(op->config.counters, MMC_COUNT_RX_REPAIRED_CHUNKS, 1);
}

void mmc_op_update_drained(struct mmc_op *op)
{
	op->repair.loss.drained = false;
	for (uint32_t c = 0; c < op->schedule.nchains; c++)
		mmc_watermark_drain(&op->watermark, c,
				    op->repair.loss.chains[c].ndrained);
}
