/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/schedule.h"

#include "core/assert.h"
#include "core/bits.h"

/* All at once while that leaves each sender two of the smallest batches. */
static uint32_t auto_chains(uint32_t nranks, uint32_t window_chunks)
{
	const uint32_t two_batches = 2 * MMC_BATCH_CHUNKS_MIN;

	if (nranks <= 2 || window_chunks / (nranks - 1) >= two_batches)
		return nranks;
	return mmc_max_u32(2, window_chunks / two_batches);
}

void mmc_schedule_init(struct mmc_schedule *schedule,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, bool apart)
{
	uint32_t window_chunks = window_bytes / layout->chunk_bytes;
	uint32_t sharers;
	uint32_t share;

	if (nchains == MMC_CHAINS_AUTO)
		nchains = auto_chains(layout->nranks, window_chunks);
	nchains = mmc_min_u32(nchains, layout->nranks);
	nchains = mmc_min_u32(nchains, MMC_CHAINS_MAX);
	/* A chain's next sender may start before its predecessor has ended. */
	sharers = nchains == layout->nranks ? mmc_max_u32(nchains - 1, 1)
					    : nchains + 1;
	if (apart)
		sharers = mmc_max_u32(sharers, layout->nranks - 1);
	share = mmc_max_u32(window_chunks / sharers, 2);
	MMC_ASSERT(nchains > 0);
	*schedule = (struct mmc_schedule){
		.nchains = nchains,
		.nranks = layout->nranks,
		.block_chunks = layout->block_chunks,
		.window_chunks = share,
		.batch_chunks = mmc_min_u32(share / 2, MMC_BATCH_CHUNKS_MAX),
	};
}
