/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of loss.h that finds gaps in what has arrived: which chunks are
 * late, and which are lost.
 */
#include "core/repair/loss.h"
#include "support/bits.h"

/* Returns whether any chunk in [from, to) of a sequence is missing. */
static bool has_gap(const struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t from,
		    uint32_t to)
{
	return mmc_bitmap_next_clear(&claimed, 1, sequence->first + from,
				     sequence->first + to)
		       .count > 0;
}

/* Counts what is missing of the noted gaps as late. */
static void delay_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       uint64_t now_ns)
{
	bool again = false;

	loss->gap_ns = MMC_NEVER_NS;
	loss->drained = true;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		for (uint32_t i = 0; i < chain->nsequences; i++) {
			struct mmc_sequence *sequence = &chain->sequences[i];

			if (sequence->turn >= chain->nbegun)
				continue;
			mmc_chain_mark_late(chain, sequence, claimed,
					    sequence->gap_end);
			again |= has_gap(sequence, claimed, sequence->late_end,
					 sequence->end);
		}
	}
	if (again)
		mmc_loss_gap(loss, now_ns);
	mmc_loss_mark_late(loss, now_ns);
}

/*
 * Returns whether the chunks noted as late are lost. While the link is busy, a window
 * of every chain may be ahead of them in the last queue.
 */
static bool is_overdue(const struct mmc_loss *loss, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint64_t window_chunks =
		(uint64_t)schedule->window_chunks * schedule->nchains;

	return now_ns - loss->heard_ns >= loss->allowance_ns ||
	       mmc_loss_heard(loss) - loss->overdue_heard >= window_chunks;
}

/* ---- lost ---------------------------------------------------------------- */

/* Counts what is missing of the noted late chunks as lost. */
static void lose_late(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		      uint64_t now_ns)
{
	bool again = false;
	bool held = false; /* parity has yet to come that may mend some */

	loss->overdue_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		chain->lost_turns = chain->noted_late_turns;
		again |= chain->lost_turns < chain->late_turns;
		for (uint32_t i = 0; i < chain->nsequences; i++) {
			struct mmc_sequence *sequence = &chain->sequences[i];
			uint32_t end = sequence->noted_late_end;

			if (sequence->turn >= chain->nbegun)
				continue;
			if (mmc_loss_may_be_mended(loss))
				end = mmc_min_u32(end, mmc_loss_passed(loss,
								       sequence,
								       now_ns));
			held |= end < sequence->noted_late_end;
			mmc_chain_lose(chain, sequence, claimed, end);
			again |= has_gap(sequence, claimed, sequence->lost_end,
					 sequence->late_end);
		}
		mmc_loss_pass(loss, c, now_ns);
	}
	if (again)
		mmc_loss_mark_late(loss, now_ns);
	if (again && held)
		loss->overdue_ns = mmc_max_u64(loss->overdue_ns,
					       now_ns + loss->allowance_ns);
}

void mmc_loss_lose_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint64_t now_ns)
{
	if (now_ns >= loss->gap_ns)
		delay_gaps(loss, claimed, now_ns);
	if (now_ns < loss->overdue_ns)
		return;
	if (is_overdue(loss, now_ns))
		lose_late(loss, claimed, now_ns);
	else
		loss->overdue_ns =
			loss->heard_ns + loss->allowance_ns +
			mmc_prng_below(&loss->prng,
				       mmc_loss_jitter_ns(loss, now_ns));
}
