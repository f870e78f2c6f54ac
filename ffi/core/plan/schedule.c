/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/schedule.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

size_t mmc_schedule_bytes(const struct mmc_layout *layout)
{
	if (layout->equal || layout->sole)
		return 0;
	return mmc_part_bytes(layout->nsenders * sizeof(uint32_t));
}

/*
 * Returns how many senders a rank hears, at the most, when all senders send at once and
 * each of them has one of the `nchains` chains.
 */
static uint32_t heard_chains(const struct mmc_layout *layout, uint32_t nchains)
{
	/* A sender does not hear itself, but a rank with an empty block hears all. */
	if (layout->nsenders == layout->nranks)
		nchains--;
	return mmc_max_u32(nchains, 1);
}

/*
 * Chooses the number of chains: as many as senders, if the window then holds two of the
 * smallest batches of each sender that a rank hears; otherwise fewer, but at least two.
 */
static uint32_t auto_chains(const struct mmc_layout *layout,
			    uint32_t window_chunks)
{
	const uint32_t two_batches = 2 * MMC_BATCH_CHUNKS_MIN;
	uint32_t nsenders = layout->nsenders;
	uint32_t nchains;
	uint32_t nturns;

	if (nsenders <= 2 ||
	    window_chunks / heard_chains(layout, nsenders) >= two_batches)
		return nsenders;
	nchains = mmc_max_u32(2, window_chunks / two_batches);
	/*
	 * If fewer chains need no more turns, all chains have the same number of turns.
	 */
	nturns = (nsenders + nchains - 1) / nchains;
	return mmc_max_u32(2, (nsenders + nturns - 1) / nturns);
}

/* Returns the position of each sender's first chunk in its chain, if uneven. */
static const uint32_t *starts_of(const struct mmc_layout *layout,
				 uint32_t nchains, uint8_t *memory)
{
	uint32_t *starts;

	if (layout->equal || layout->sole)
		return NULL;
	starts = mmc_part_take(&memory, layout->nsenders * sizeof(*starts));
	for (uint32_t s = 0; s < layout->nsenders; s++) {
		uint32_t predecessor;

		starts[s] = 0;
		if (s < nchains)
			continue;
		predecessor = s - nchains;
		starts[s] =
			starts[predecessor] +
			layout->blocks[layout->senders[predecessor]].nchunks;
	}
	return starts;
}

void mmc_schedule_init(struct mmc_schedule *schedule, uint8_t *memory,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, uint32_t source_bytes)
{
	uint32_t window_chunks = window_bytes / layout->chunk_bytes;
	uint32_t sharers; /* senders that have chunks in flight at once */
	uint32_t share;	  /* chunks that each of them may have in flight */

	if (nchains == MMC_CHAINS_AUTO)
		nchains = auto_chains(layout, window_chunks);
	nchains = mmc_min_u32(nchains, layout->nsenders);
	nchains = mmc_min_u32(nchains, MMC_CHAINS_MAX);
	/* In one of the chains the next sender may begin before the last has ended. */
	sharers = nchains == layout->nsenders ? heard_chains(layout, nchains)
					      : nchains + 1;
	share = mmc_min_u32(window_chunks / sharers,
			    source_bytes / layout->chunk_bytes);
	share = mmc_max_u32(share, 2);
	MMC_ASSERT(nchains > 0);
	*schedule = (struct mmc_schedule){
		.layout = *layout,
		.starts = starts_of(layout, nchains, memory),
		.nchains = nchains,
		.window_chunks = share,
		.batch_chunks = mmc_min_u32(share / 2, MMC_BATCH_CHUNKS_MAX),
	};
}

/* Returns the number of the last sender of `chain`. */
static uint32_t last_sender(const struct mmc_schedule *schedule, uint32_t chain)
{
	return (mmc_schedule_turns(schedule, chain) - 1) * schedule->nchains +
	       chain;
}

uint32_t mmc_schedule_length(const struct mmc_schedule *schedule,
			     uint32_t chain)
{
	const struct mmc_layout *layout = &schedule->layout;
	uint32_t last = last_sender(schedule, chain);
	const struct mmc_block block =
		mmc_layout_block(layout, mmc_layout_sender(layout, last));

	return mmc_schedule_start(schedule, &block) + block.nchunks;
}

uint32_t mmc_schedule_rank(const struct mmc_schedule *schedule, uint32_t chain,
			   uint32_t position)
{
	const struct mmc_layout *layout = &schedule->layout;
	uint32_t number;

	if (schedule->starts == NULL) {
		number = position / layout->block_chunks * schedule->nchains +
			 chain;
	} else {
		number = last_sender(schedule, chain);
		while (schedule->starts[number] > position)
			number -= schedule->nchains;
	}
	return mmc_layout_sender(layout, number);
}
