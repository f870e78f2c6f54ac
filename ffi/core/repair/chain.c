/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/chain.h"

#include "support/assert.h"
#include "support/bits.h"

uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains)
{
	/* A chain of few turns has a sequence for each of them. */
	return mmc_min_u32(MMC_CHAIN_SEQUENCES * nchains, nsenders + nchains);
}

/*
 * Returns a free sequence, or NULL. The search begins where mmc_chain_sequence() will
 * begin to look for `turn`.
 */
static struct mmc_sequence *free_sequence(struct mmc_chain *chain,
					  uint32_t turn)
{
	uint32_t n = chain->nsequences;

	for (uint32_t i = 0; i < n; i++) {
		struct mmc_sequence *sequence =
			&chain->sequences[(turn + i) % n];

		if (sequence->turn == MMC_TURN_NONE)
			return sequence;
	}
	return NULL;
}

/* Follows the sender of the next turn. A sequence must be free. */
static void follow_next(struct mmc_chain *chain,
			const struct mmc_schedule *schedule, uint32_t number,
			uint64_t now_ns)
{
	const struct mmc_layout *layout = &schedule->layout;
	uint32_t turn = chain->nfollowed++;
	uint32_t rank =
		mmc_layout_sender(layout, turn * schedule->nchains + number);
	const struct mmc_block block = mmc_layout_block(layout, rank);
	struct mmc_sequence *sequence = free_sequence(chain, turn);

	MMC_ASSERT(sequence != NULL);
	*sequence = (struct mmc_sequence){
		.turn = turn,
		.rank = rank,
		.first = block.first,
		.nchunks = block.nchunks,
		.start = mmc_schedule_start(schedule, &block),
		.nleft = block.nchunks,
		.heard_ns = now_ns,
		.late_at_ns = MMC_NEVER_NS,
	};
	mmc_backoff_stop(&sequence->silence);
}

/* Sets `turn` to the first turn from which more is expected. */
static void find_first(struct mmc_chain *chain, uint64_t now_ns)
{
	uint32_t before = chain->turn;
	struct mmc_sequence *first;

	chain->turn = chain->nfollowed;
	for (uint32_t i = 0; i < chain->nsequences; i++)
		chain->turn =
			mmc_min_u32(chain->turn, chain->sequences[i].turn);
	first = mmc_chain_sequence(chain, chain->turn);
	if (first != NULL && chain->turn > before &&
	    chain->turn >= chain->nbegun)
		first->heard_ns = now_ns;
}

/* Follows the senders that may begin soon, as far as sequences are free. */
static void look_ahead(struct mmc_chain *chain,
		       const struct mmc_schedule *schedule, uint32_t number,
		       uint64_t now_ns)
{
	uint32_t end = mmc_min_u32(chain->nturns,
				   mmc_max_u32(chain->nbegun, chain->turn) +
					   MMC_CHAIN_AHEAD);

	while (chain->nfollowed < end && free_sequence(chain, 0) != NULL)
		follow_next(chain, schedule, number, now_ns);
}

void mmc_chain_init(struct mmc_chain *chain, struct mmc_sequence *sequences,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns)
{
	uint32_t nturns = mmc_schedule_turns(schedule, number);

	*chain = (struct mmc_chain){
		.sequences = sequences,
		.nsequences = mmc_min_u32(MMC_CHAIN_SEQUENCES, nturns),
		.nturns = nturns,
	};
	for (uint32_t i = 0; i < chain->nsequences; i++)
		sequences[i].turn = MMC_TURN_NONE;
	look_ahead(chain, schedule, number, now_ns);
}

void mmc_chain_end(struct mmc_chain *chain)
{
	for (uint32_t i = 0; i < chain->nsequences; i++)
		chain->sequences[i].turn = MMC_TURN_NONE;
	chain->turn = chain->nturns;
	chain->nfollowed = chain->nturns;
	chain->lost_turns = chain->nturns;
}

void mmc_chain_mark_late(struct mmc_chain *chain, struct mmc_sequence *sequence,
			 const struct mmc_bitmap *claimed, uint32_t end)
{
	struct mmc_run run = { .first = sequence->first + sequence->late_end };

	if (end <= sequence->late_end)
		return;
	run.count = end - sequence->late_end;
	chain->ndrained += run.count - mmc_bitmap_count_run(claimed, run);
	sequence->late_end = end;
	sequence->end = mmc_max_u32(sequence->end, end);
}

void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end)
{
	mmc_chain_mark_late(chain, sequence, claimed, end);
	sequence->lost_end = mmc_max_u32(sequence->lost_end, end);
}

void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns)
{
	for (uint32_t i = 0; i < chain->nsequences; i++) {
		struct mmc_sequence *sequence = &chain->sequences[i];

		if (sequence->nleft == 0 ||
		    sequence->lost_end >= sequence->nchunks)
			sequence->turn = MMC_TURN_NONE;
	}
	find_first(chain, now_ns);
	look_ahead(chain, schedule, number, now_ns);
	find_first(chain, now_ns);
}

/* Gives up the first sender that is followed, which frees its sequence. */
static void give_up_first(struct mmc_chain *chain,
			  const struct mmc_bitmap *claimed)
{
	struct mmc_sequence *first = mmc_chain_sequence(chain, chain->turn);

	mmc_chain_mark_late(chain, first, claimed, first->nchunks);
	chain->late_turns = first->turn + 1;
	first->turn = MMC_TURN_NONE;
}

struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns)
{
	if (turn < chain->nbegun)
		return mmc_chain_sequence(chain, turn);
	while (turn >= chain->nfollowed) {
		if (free_sequence(chain, 0) == NULL)
			give_up_first(chain, claimed);
		follow_next(chain, schedule, number, now_ns);
		find_first(chain, now_ns);
	}
	chain->nbegun = mmc_max_u32(chain->nbegun, turn + 1);
	look_ahead(chain, schedule, number, now_ns);
	return mmc_chain_sequence(chain, turn);
}
