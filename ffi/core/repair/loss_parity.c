/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of loss.h that waits for parity before chunks count as lost.
 */
#include "core/repair/loss.h"
#include "support/bits.h"

/* Returns where the last span ends that does so at `place` of a block or before. */
static uint32_t span_floor(const struct mmc_loss *loss,
			   const struct mmc_sequence *sequence, uint32_t place)
{
	if (place == sequence->nchunks)
		return place;
	return place - place % mmc_grouping_span(&loss->grouping);
}

void mmc_loss_pass_parity(struct mmc_loss *loss, struct mmc_sequence *sequence,
			  uint32_t end)
{
	sequence->passed =
		mmc_max_u32(sequence->passed, span_floor(loss, sequence, end));
}

uint32_t mmc_loss_passed(const struct mmc_loss *loss,
			 const struct mmc_sequence *sequence, uint64_t now_ns)
{
	uint64_t last_ns = mmc_max_u64(sequence->heard_ns, loss->heard_ns);

	if (now_ns - last_ns >= loss->quiet_ns ||
	    now_ns - sequence->heard_ns >= loss->busy_ns)
		return sequence->nchunks;
	if (sequence->end == 0)
		return sequence->passed;
	return mmc_max_u32(sequence->passed,
			   span_floor(loss, sequence, sequence->end - 1));
}

void mmc_loss_hear_parity(struct mmc_loss *loss,
			  const struct mmc_bitmap *claimed,
			  const struct mmc_block *block,
			  const struct mmc_parity_heard *heard, uint64_t now_ns)
{
	uint32_t number = mmc_schedule_chain(&loss->schedule, block);
	struct mmc_chain *chain = &loss->chains[number];
	struct mmc_sequence *sequence =
		mmc_loss_follow(loss, claimed, block, now_ns);

	loss->heard_ns = now_ns;
	if (sequence == NULL)
		return;
	sequence->heard_ns = now_ns;
	if (heard->end > sequence->end) {
		sequence->end = heard->end;
		chain->seen =
			mmc_max_u32(chain->seen, sequence->start + heard->end);
		mmc_loss_gap(loss, now_ns);
	}
	if (heard->last && mmc_loss_may_be_mended(loss))
		mmc_loss_pass_parity(loss, sequence, heard->end);
}
