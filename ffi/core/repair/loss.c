/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/loss.h"

#include "support/bits.h"
#include "support/memory.h"

/*
 * The random delays of requests to owners, per rank and at the most. A rank that waits
 * may hear that the chunk which it lacks will be multicast again.
 */
#define JITTER_PER_RANK_NS (2 * MMC_US_NS)
#define JITTER_MAX_NS MMC_MS_NS

/*
 * The same per rank for a neighbour, which lacks chunks itself, and has more of them
 * later.
 */
#define JITTER_RING_PER_RANK_NS (5 * MMC_US_NS)

/* Fewer chunks of a chain than this may all be lost by chance. */
#define DEAF_CHUNKS 8

/* However short the round trip is, an answer is waited for at least this long. */
#define RETRY_MIN_NS (200 * MMC_US_NS)

size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nsenders, uint32_t nchains)
{
	return 3 * mmc_part_bytes(mmc_bitmap_bytes(nchunks)) +
	       mmc_part_bytes(nchains * sizeof(struct mmc_chain)) +
	       mmc_part_bytes(mmc_chain_sequences(nsenders, nchains) *
			      sizeof(struct mmc_sequence));
}

void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory,
		   const struct mmc_loss_config *config)
{
	uint32_t nchunks = config->nchunks;
	size_t bytes = mmc_bitmap_bytes(nchunks);

	*loss = (struct mmc_loss){
		.rank = config->rank,
		.policy = config->policy,
		.prng = { .state = config->seed },
		.gap_ns = MMC_NEVER_NS,
		.overdue_ns = MMC_NEVER_NS,
		.ask_ns = MMC_NEVER_NS,
		.silence_ns = MMC_NEVER_NS,
		.sweep_chunk = nchunks,
		.timed_chunk = UINT32_MAX,
	};
	mmc_backoff_stop(&loss->retry);
	mmc_bitmap_init(&loss->asked, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->before, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->lost, mmc_part_take(&memory, bytes), nchunks);
	loss->chains = mmc_part_take(&memory, config->nchains *
						      sizeof(struct mmc_chain));
	loss->sequences = (struct mmc_sequence *)memory;
}

/* ---- what arrives ------------------------------------------------------- */

void mmc_loss_mark_late(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->overdue_ns != MMC_NEVER_NS)
		return;
	loss->stirred = true;
	loss->overdue_ns =
		now_ns +
		mmc_prng_below(&loss->prng, mmc_loss_jitter_ns(loss, now_ns));
	loss->overdue_heard = mmc_loss_heard(loss);
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		chain->noted_late_turns = chain->late_turns;
		for (uint32_t i = 0; i < chain->nsequences; i++)
			chain->sequences[i].noted_late_end =
				chain->sequences[i].late_end;
	}
}

struct mmc_sequence *mmc_loss_follow(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const struct mmc_block *block,
				     uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint32_t number = mmc_schedule_chain(schedule, block);
	struct mmc_chain *chain = &loss->chains[number];
	uint32_t ndrained = chain->ndrained;
	uint32_t nbegun = chain->nbegun;
	struct mmc_sequence *sequence =
		mmc_chain_follow(chain, schedule, number, claimed,
				 mmc_schedule_turn(schedule, block), now_ns);

	loss->stirred |= chain->nbegun > nbegun;
	if (chain->ndrained > ndrained) {
		loss->drained = true;
		mmc_loss_mark_late(loss, now_ns);
	}
	return sequence;
}

void mmc_loss_pass(struct mmc_loss *loss, uint32_t chain, uint64_t now_ns)
{
	struct mmc_chain *at = &loss->chains[chain];

	if (at->turn == at->nturns)
		return;
	loss->stirred = true;
	mmc_chain_pass(at, &loss->schedule, chain, now_ns);
	if (at->turn == at->nturns)
		loss->nopen--;
	else
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, now_ns + loss->quiet_ns);
}

void mmc_loss_sent(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		   const struct mmc_block *block, struct mmc_run run,
		   uint64_t now_ns)
{
	uint32_t chain = mmc_schedule_chain(&loss->schedule, block);
	struct mmc_sequence *sequence =
		mmc_loss_follow(loss, claimed, block, now_ns);

	loss->chains[chain].ndrained += run.count;
	if (sequence == NULL)
		return;
	sequence->heard_ns = now_ns;
	sequence->end = run.first + run.count;
	sequence->late_end = sequence->end;
	sequence->lost_end = sequence->end;
	sequence->nleft -= run.count;
	loss->chains[chain].seen = mmc_max_u32(loss->chains[chain].seen,
					       sequence->start + sequence->end);
	if (sequence->nleft == 0)
		mmc_loss_pass(loss, chain, now_ns);
}

/* Accounts for the chunks of a sender that arrived before the flow began here. */
static void catch_up(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		     uint32_t owner, uint64_t now_ns)
{
	const struct mmc_block block =
		mmc_layout_block(&loss->schedule.layout, owner);
	uint32_t chain = mmc_schedule_chain(&loss->schedule, &block);
	uint32_t end = block.first + block.nchunks;
	struct mmc_run run = mmc_bitmap_next_set(claimed, block.first, end);
	struct mmc_sequence *sequence;

	if (run.count == 0 || owner == loss->rank)
		return;
	sequence = mmc_loss_follow(loss, claimed, &block, now_ns);
	while (run.count > 0) {
		uint32_t last = run.first + run.count - 1;

		loss->chains[chain].nheard += run.count;
		loss->chains[chain].ndrained += run.count;
		sequence->nleft -= run.count;
		mmc_loss_hear(loss, &loss->chains[chain], sequence,
			      last - block.first, 1, now_ns);
		run = mmc_bitmap_next_set(claimed, last + 1, end);
	}
	mmc_loss_pass(loss, chain, now_ns);
}

static void begin_chains(struct mmc_loss *loss,
			 const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_layout *layout = &schedule->layout;
	struct mmc_sequence *sequences = loss->sequences;

	loss->nopen = schedule->nchains;
	for (uint32_t c = 0; c < schedule->nchains; c++) {
		mmc_chain_init(&loss->chains[c], sequences, schedule, c,
			       now_ns);
		sequences += loss->chains[c].nsequences;
	}
	for (uint32_t s = 0; s < layout->nsenders; s++)
		catch_up(loss, claimed, mmc_layout_sender(layout, s), now_ns);
	for (uint32_t c = 0; c < schedule->nchains; c++)
		mmc_loss_pass(loss, c, now_ns);
}

void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed,
		    const struct mmc_loss_terms *terms, uint64_t now_ns)
{
	uint64_t srtt_ns = terms->srtt_ns;
	uint64_t nranks = schedule->layout.nranks;
	uint64_t per_rank_ns = loss->policy->gathers ? JITTER_PER_RANK_NS
						     : JITTER_RING_PER_RANK_NS;

	loss->schedule = *schedule;
	loss->begun_ns = now_ns;
	loss->busy_ns = MMC_BACKOFF_MAX_NS;
	loss->heard_ns = now_ns;
	loss->budget_chunks = terms->budget_chunks;
	loss->direct_chunks = MMC_LOSS_DIRECT_CHUNKS;
	loss->quiet_ns = mmc_loss_quiet_ns(terms);
	loss->jitter_max_ns = mmc_min_u64(JITTER_MAX_NS, nranks * per_rank_ns);
	loss->allowance_ns = mmc_allowance_ns(srtt_ns, terms->late_ns);
	loss->trip_ns = RETRY_MIN_NS;
	mmc_loss_stretch(loss, srtt_ns);
	loss->silence_ns = now_ns + loss->quiet_ns;
	loss->silence_chain = schedule->nchains;
	begin_chains(loss, claimed, now_ns);
}

void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_policy *policy,
			     uint64_t now_ns)
{
	loss->policy = policy;
	loss->silence_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	loss->nopen = 0;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		mmc_chain_end(&loss->chains[c]);
		loss->chains[c].ndrained =
			mmc_schedule_length(&loss->schedule, c);
	}
}

void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->gap_ns != MMC_NEVER_NS)
		return;
	loss->stirred = true;
	loss->gap_ns = now_ns + loss->allowance_ns;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		for (uint32_t i = 0; i < chain->nsequences; i++)
			chain->sequences[i].gap_end = chain->sequences[i].end;
	}
}

/* ---- what was heard ------------------------------------------------------ */

uint32_t mmc_loss_heard(const struct mmc_loss *loss)
{
	uint32_t nheard = 0;

	for (uint32_t c = 0; c < loss->schedule.nchains; c++)
		nheard += loss->chains[c].nheard;
	return nheard;
}

uint32_t mmc_loss_unheard(const struct mmc_loss *loss)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block own =
		mmc_layout_block(&schedule->layout, loss->rank);
	uint32_t own_chain = mmc_schedule_chain(schedule, &own);
	bool own_first = mmc_schedule_start(schedule, &own) == 0;

	for (uint32_t c = 0; c < schedule->nchains; c++) {
		uint32_t own_chunks = c == own_chain ? own.nchunks : 0;

		if (mmc_schedule_length(schedule, c) >=
			    DEAF_CHUNKS + own_chunks &&
		    loss->chains[c].nheard == 0)
			return mmc_schedule_rank(schedule, c,
						 own_first ? own_chunks : 0);
	}
	return MMC_PEER_NONE;
}

uint64_t mmc_loss_ending_ns(const struct mmc_loss *loss)
{
	if (!loss->policy->gathers || loss->nopen > loss->schedule.nchains / 4)
		return MMC_NEVER_NS;
	return loss->heard_ns + loss->quiet_ns;
}

uint64_t mmc_loss_deadline(const struct mmc_loss *loss)
{
	uint64_t haste_ns = MMC_NEVER_NS;

	if (loss->sweep_chunk < loss->asked.nbits ||
	    loss->silence_chain < loss->schedule.nchains)
		return 0;
	if (!loss->hastened && loss->retry.at_ns != MMC_NEVER_NS)
		haste_ns = mmc_loss_ending_ns(loss);
	return mmc_min_u64(
		mmc_min_u64(mmc_min_u64(loss->ask_ns, loss->silence_ns),
			    mmc_min_u64(loss->gap_ns, loss->overdue_ns)),
		mmc_min_u64(loss->retry.at_ns, haste_ns));
}
