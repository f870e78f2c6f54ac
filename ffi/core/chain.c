/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/chain.h"

#include "core/bits.h"

uint32_t mmc_chain_sequences(uint32_t nsenders, uint32_t nchains)
{
	/* In a chain of few turns, one each: rounded up in every chain. */
	return mmc_min_u32(MMC_CHAIN_SEQUENCES * nchains, nsenders + nchains);
}

/* Keeps the sequence of `turn` from now on; behind the last turn, none. */
static void keep(struct mmc_chain *chain, const struct mmc_schedule *schedule,
		 uint32_t number, uint32_t turn, uint64_t now_ns)
{
	const struct mmc_layout *layout = &schedule->layout;
	struct mmc_sequence *sequence =
		&chain->sequences[turn % chain->nsequences];
	struct mmc_block block;
	uint32_t rank;

	*sequence = (struct mmc_sequence){ .turn = MMC_TURN_NONE };
	if (turn >= chain->nturns)
		return;
	rank = mmc_layout_sender(layout, turn * schedule->nchains + number);
	block = mmc_layout_block(layout, rank);
	*sequence = (struct mmc_sequence){
		.turn = turn,
		.rank = rank,
		.first = block.first,
		.nchunks = block.nchunks,
		.start = mmc_schedule_start(schedule, &block),
		.nleft = block.nchunks,
		.heard_ns = now_ns,
		.trust_ns = MMC_NEVER_NS,
	};
	mmc_backoff_stop(&sequence->silence);
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
	for (uint32_t turn = 0; turn < chain->nsequences; turn++)
		keep(chain, schedule, number, turn, now_ns);
}

void mmc_chain_lose(struct mmc_chain *chain, struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed, uint32_t end)
{
	struct mmc_run run = { .first = sequence->first + sequence->lost_end };

	if (end <= sequence->lost_end)
		return;
	run.count = end - sequence->lost_end;
	chain->npassed += run.count - mmc_bitmap_count_run(claimed, run);
	sequence->lost_end = end;
	sequence->end = mmc_max_u32(sequence->end, end);
}

/* Gives the first sequence's place to a later one. */
static void pass_first(struct mmc_chain *chain,
		       const struct mmc_schedule *schedule, uint32_t number,
		       uint64_t now_ns)
{
	struct mmc_sequence *next;

	keep(chain, schedule, number, chain->turn + chain->nsequences, now_ns);
	chain->turn++;
	next = mmc_chain_sequence(chain, chain->turn);
	if (next != NULL && chain->turn >= chain->nbegun)
		next->heard_ns = now_ns;
}

void mmc_chain_pass(struct mmc_chain *chain,
		    const struct mmc_schedule *schedule, uint32_t number,
		    uint64_t now_ns)
{
	while (chain->turn < chain->nturns) {
		const struct mmc_sequence *first =
			mmc_chain_sequence(chain, chain->turn);

		if (first->nleft > 0 && first->lost_end < first->nchunks)
			return;
		pass_first(chain, schedule, number, now_ns);
	}
}

struct mmc_sequence *mmc_chain_follow(struct mmc_chain *chain,
				      const struct mmc_schedule *schedule,
				      uint32_t number,
				      const struct mmc_bitmap *claimed,
				      uint32_t turn, uint64_t now_ns)
{
	while (turn >= chain->turn + chain->nsequences) {
		struct mmc_sequence *first =
			mmc_chain_sequence(chain, chain->turn);

		mmc_chain_lose(chain, first, claimed, first->nchunks);
		pass_first(chain, schedule, number, now_ns);
	}
	chain->nbegun = mmc_max_u32(chain->nbegun, turn + 1);
	return mmc_chain_sequence(chain, turn);
}
