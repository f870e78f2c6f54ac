/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/landing.h"

#include "support/assert.h"
#include "support/bits.h"

size_t mmc_landing_bytes(uint32_t nblocks)
{
	return 2 * (size_t)nblocks * sizeof(uint32_t);
}

/* Appends the block of `rank` to those that have landed. */
static void land(struct mmc_landing *landing, uint32_t rank)
{
	landing->order[landing->nlanded] = rank;
	__atomic_store_n(&landing->nlanded, landing->nlanded + 1,
			 __ATOMIC_RELEASE);
}

void mmc_landing_init(struct mmc_landing *landing, uint8_t *memory,
		      const struct mmc_layout *layout,
		      const struct mmc_bitmap *present, struct mmc_run ranks,
		      uint32_t own)
{
	uint32_t *words = (uint32_t *)(void *)memory;

	*landing = (struct mmc_landing){
		.layout = layout,
		.present = present,
		.ranks = ranks,
		.lacking = words,
		.order = words + ranks.count,
	};
	for (uint32_t i = 0; i < ranks.count; i++)
		landing->lacking[i] =
			mmc_layout_block(layout, ranks.first + i).nchunks;
	if (own - ranks.first < ranks.count) {
		landing->lacking[own - ranks.first] = 0;
		land(landing, own);
	}
	for (uint32_t i = 0; i < ranks.count; i++)
		if (landing->lacking[i] == 0 && ranks.first + i != own)
			land(landing, ranks.first + i);
}

void mmc_landing_add(struct mmc_landing *landing, struct mmc_run run)
{
	while (run.count > 0) {
		const struct mmc_block *block = &landing->block;
		uint32_t place = run.first - block->first;
		uint32_t *lacking;
		uint32_t count;

		if (place >= block->nchunks) {
			landing->rank =
				mmc_layout_owner(landing->layout, run.first);
			landing->block = mmc_layout_block(landing->layout,
							  landing->rank);
			place = run.first - block->first;
		}
		count = mmc_min_u32(run.count, block->nchunks - place);
		lacking =
			&landing->lacking[landing->rank - landing->ranks.first];
		MMC_ASSERT(*lacking >= count);
		*lacking -= count;
		if (*lacking == 0)
			land(landing, landing->rank);
		run.first += count;
		run.count -= count;
	}
}

bool mmc_landing_has(const struct mmc_landing *landing, uint32_t rank,
		     uint64_t first_bytes, uint64_t nbytes)
{
	const struct mmc_layout *layout = landing->layout;
	uint32_t chunk_bytes = layout->chunk_bytes;
	struct mmc_block block;
	uint64_t first, end;

	if (nbytes == 0)
		return true;
	block = mmc_layout_block(layout, rank);
	first = first_bytes / chunk_bytes;
	end = (first_bytes + nbytes - 1) / chunk_bytes + 1;
	return mmc_bitmap_is_published(
		landing->present,
		(struct mmc_run){ .first = block.first + (uint32_t)first,
				  .count = (uint32_t)(end - first) });
}
