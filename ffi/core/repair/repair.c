/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/repair.h"

#include "support/bits.h"
#include "support/memory.h"

/* A chunk is multicast again if one rank in so many lacks it, and at least two do. */
#define SHARER_RANKS 16

size_t mmc_repair_bytes(const struct mmc_layout *layout, uint32_t nchains,
			enum mmc_repair policy)
{
	size_t nbytes = mmc_part_bytes(mmc_loss_bytes(
				layout->nchunks, layout->nsenders, nchains)) +
			mmc_part_bytes(mmc_repairer_bytes(layout->nchunks)) +
			mmc_part_bytes(mmc_budget_bytes(layout->nranks));

	if (policy == MMC_REPAIR_READ)
		nbytes += mmc_part_bytes(mmc_fetcher_bytes(layout->nchunks));
	return nbytes;
}

void mmc_repair_init(struct mmc_repair_state *repair, uint8_t *memory,
		     const struct mmc_repair_config *config)
{
	const struct mmc_layout *layout = config->layout;
	const struct mmc_loss_config losses = {
		.policy = mmc_repair_policy(config->policy),
		.rank = config->rank,
		.nchunks = layout->nchunks,
		.nchains = config->nchains,
		.seed = config->seed,
	};
	uint8_t *part = mmc_part_take(&memory, mmc_loss_bytes(layout->nchunks,
							      layout->nsenders,
							      config->nchains));

	*repair = (struct mmc_repair_state){
		.policy = losses.policy,
		.layout = layout,
		.claimed = config->claimed,
		.present = config->present,
		.rank = config->rank,
	};
	mmc_advertiser_init(&repair->advertiser, config->generation,
			    config->generation_word);
	mmc_loss_init(&repair->loss, part, &losses);
	repair->repairer_memory =
		mmc_part_take(&memory, mmc_repairer_bytes(layout->nchunks));
	repair->budget_memory =
		mmc_part_take(&memory, mmc_budget_bytes(layout->nranks));
	if (config->policy == MMC_REPAIR_READ)
		mmc_fetcher_init(&repair->fetcher, memory, config->rank, layout,
				 config->read_bytes);
}

void mmc_repair_begin(struct mmc_repair_state *repair,
		      const struct mmc_schedule *schedule,
		      const struct mmc_loss_terms *terms, uint64_t now_ns)
{
	const struct mmc_block own =
		mmc_layout_block(repair->layout, repair->rank);
	struct mmc_repairer_config serving = {
		.present = repair->present,
		.own = { .first = own.first, .count = own.nchunks },
		.gathers = repair->policy->gathers,
		.multicast_min =
			mmc_max_u32(2, repair->layout->nranks / SHARER_RANKS),
		.rest_ns = terms->srtt_ns,
	};

	mmc_loss_begin(&repair->loss, schedule, repair->claimed, terms, now_ns);
	serving.gather_ns = repair->loss.jitter_max_ns;
	mmc_repairer_init(&repair->repairer, repair->repairer_memory, &serving);
	mmc_budget_init(&repair->budget, repair->budget_memory,
			repair->layout->nranks, now_ns);
	mmc_fetcher_begin(&repair->fetcher, terms->srtt_ns);
}

void mmc_repair_expect_nothing(struct mmc_repair_state *repair, uint64_t now_ns)
{
	repair->policy = mmc_repair_policy(MMC_REPAIR_NEIGHBOUR);
	repair->repairer.gathers = repair->policy->gathers;
	mmc_loss_expect_nothing(&repair->loss, repair->policy, now_ns);
}

/* ---- asking -------------------------------------------------------------- */

bool mmc_repair_ask(struct mmc_repair_state *repair, uint64_t now_ns,
		    struct mmc_nak *nak)
{
	while (mmc_loss_ask(&repair->loss, repair->claimed, now_ns, nak))
		if (repair->policy->on_missing(repair, nak, now_ns))
			return true;
	return false;
}

bool mmc_repair_accepts(const struct mmc_repair_state *repair, uint32_t source,
			uint32_t owner)
{
	return source == owner ||
	       repair->policy->serves(source, repair->layout->nranks, owner,
				      repair->rank);
}

uint32_t mmc_repair_awaited(const struct mmc_repair_state *repair)
{
	const struct mmc_layout *layout = repair->layout;
	struct mmc_run missing =
		mmc_bitmap_next_clear(&repair->present, 1, 0, layout->nchunks);

	if (missing.count > 0)
		return repair->policy->repairer(
			repair->rank, layout->nranks,
			mmc_layout_owner(layout, missing.first), 0);
	return repair->fetcher.nreading > 0
		       ? (repair->rank + layout->nranks - 1) % layout->nranks
		       : MMC_PEER_NONE;
}

/* ---- serving ------------------------------------------------------------- */

/* Returns how many chunks this rank serves to `peer`. */
static uint32_t served_to(const struct mmc_repair_state *repair, uint32_t peer)
{
	const struct mmc_layout *layout = repair->layout;

	/* A peer that this rank serves even the peer's own block may ask for any chunk. */
	if (repair->policy->serves(repair->rank, layout->nranks, peer, peer))
		return layout->nchunks;
	return mmc_layout_block(layout, repair->rank).nchunks;
}

/*
 * Passes on to the repairer that part of a run which lies in `owner`'s block, if this
 * rank serves that. Only the first `nheld` chunks of the block can be served. Returns
 * false if the sender's budget does not cover all of them.
 */
static bool serve_block(struct mmc_repair_state *repair,
			const struct mmc_nak *nak, struct mmc_run run,
			uint32_t owner, uint32_t nheld, uint64_t now_ns)
{
	const struct mmc_repair_policy *policy = repair->policy;
	uint32_t first = mmc_layout_block(repair->layout, owner).first;
	uint32_t end = mmc_min_u32(run.first + run.count, first + nheld);
	uint32_t asked;

	run.first = mmc_max_u32(run.first, first);
	if (run.first >= end ||
	    !policy->serves(repair->rank, repair->layout->nranks, owner,
			    nak->peer))
		return true;
	asked = end - run.first;
	run.count = mmc_budget_take(&repair->budget, nak->peer, asked,
				    served_to(repair, nak->peer), now_ns);
	if (run.count == 0)
		return false;
	/* Other ranks spread their requests over as long a time as this rank does. */
	repair->repairer.gather_ns = mmc_loss_jitter_ns(&repair->loss, now_ns);
	if (nak->direct && policy->gathers && owner == repair->rank)
		mmc_repairer_on_direct_nak(&repair->repairer, nak->peer, run);
	else
		mmc_repairer_on_nak(&repair->repairer, nak->peer, run, now_ns);
	return run.count == asked;
}

/*
 * Passes on to the repairer what this rank serves of a run, block by block. Returns false
 * if the sender's budget does not cover all of it.
 */
static bool serve_run(struct mmc_repair_state *repair,
		      const struct mmc_nak *nak, struct mmc_run run,
		      uint32_t sent_chunks, uint64_t now_ns)
{
	const struct mmc_layout *layout = repair->layout;
	uint32_t owner = mmc_layout_owner(layout, run.first);

	for (; owner < layout->nranks; owner++) {
		const struct mmc_block block = mmc_layout_block(layout, owner);
		uint32_t nheld = owner == repair->rank ? sent_chunks
						       : block.nchunks;

		if (block.first >= run.first + run.count)
			return true;
		if (!serve_block(repair, nak, run, owner, nheld, now_ns))
			return false;
	}
	return true;
}

bool mmc_repair_on_nak(struct mmc_repair_state *repair,
		       const struct mmc_nak *nak, uint32_t sent_chunks,
		       uint64_t now_ns)
{
	uint32_t nchunks = repair->layout->nchunks;
	/* Runs of a NAK do not overlap, so together they have no more chunks. */
	uint32_t left = nchunks;

	if (repair->policy->on_nak(repair, nak))
		return true;
	for (uint32_t i = 0; i < nak->nruns; i++) {
		struct mmc_run run = nak->runs[i];

		if (run.first >= nchunks || run.count > nchunks - run.first ||
		    run.count > left)
			return true;
		left -= run.count;
		if (!serve_run(repair, nak, run, sent_chunks, now_ns))
			return false;
	}
	return true;
}
