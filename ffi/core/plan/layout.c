/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/layout.h"

#include "support/memory.h"

/* Returns how many chunks a block has. */
static uint64_t chunks_of(uint64_t block_bytes, uint32_t chunk_bytes)
{
	return block_bytes / chunk_bytes + (block_bytes % chunk_bytes != 0);
}

/* Returns the payload, in bytes, of the last of a block's `nchunks` chunks. */
static uint32_t tail_of(uint64_t block_bytes, uint64_t nchunks,
			uint32_t chunk_bytes)
{
	return nchunks == 0
		       ? 0
		       : (uint32_t)(block_bytes - (nchunks - 1) * chunk_bytes);
}

int mmc_layout_init(struct mmc_layout *layout, uint32_t nranks,
		    uint64_t block_bytes, uint32_t chunk_bytes)
{
	uint64_t block_chunks;

	if (nranks == 0 || chunk_bytes == 0)
		return -MMC_EINVAL;
	block_chunks = chunks_of(block_bytes, chunk_bytes);
	if (block_chunks > MMC_CHUNKS_MAX / nranks)
		return -MMC_EINVAL;
	*layout = (struct mmc_layout){
		.block_bytes = block_bytes,
		.total_bytes = nranks * block_bytes,
		.largest_bytes = block_bytes,
		.chunk_bytes = chunk_bytes,
		.nranks = nranks,
		.nsenders = nranks,
		.nchunks = (uint32_t)block_chunks * nranks,
		.block_chunks = (uint32_t)block_chunks,
		.tail_bytes = tail_of(block_bytes, block_chunks, chunk_bytes),
		.equal = true,
	};
	return 0;
}

int mmc_layout_init_sole(struct mmc_layout *layout, uint32_t nranks,
			 uint32_t root, uint64_t block_bytes,
			 uint32_t chunk_bytes)
{
	uint64_t block_chunks;

	if (nranks <= 1 || block_bytes == 0)
		return mmc_layout_init(layout, nranks, block_bytes,
				       chunk_bytes);
	if (chunk_bytes == 0 || root >= nranks)
		return -MMC_EINVAL;
	block_chunks = chunks_of(block_bytes, chunk_bytes);
	if (block_chunks > MMC_CHUNKS_MAX)
		return -MMC_EINVAL;
	*layout = (struct mmc_layout){
		.block_bytes = block_bytes,
		.total_bytes = block_bytes,
		.largest_bytes = block_bytes,
		.chunk_bytes = chunk_bytes,
		.nranks = nranks,
		.nsenders = 1,
		.nchunks = (uint32_t)block_chunks,
		.block_chunks = (uint32_t)block_chunks,
		.tail_bytes = tail_of(block_bytes, block_chunks, chunk_bytes),
		.root = root,
		.sole = true,
	};
	return 0;
}

int mmc_layout_init_each(struct mmc_layout *layout, uint32_t nranks,
			 const uint64_t *blocks_bytes, uint32_t chunk_bytes)
{
	struct mmc_layout made = {
		.chunk_bytes = chunk_bytes,
		.nranks = nranks,
	};
	bool uneven = false;

	if (nranks == 0 || chunk_bytes == 0)
		return -MMC_EINVAL;
	for (uint32_t r = 0; r < nranks; r++) {
		uint64_t nchunks = chunks_of(blocks_bytes[r], chunk_bytes);

		if (nchunks > MMC_CHUNKS_MAX - made.nchunks)
			return -MMC_EINVAL;
		made.nchunks += (uint32_t)nchunks;
		made.nsenders += nchunks > 0;
		made.total_bytes += blocks_bytes[r];
		if (blocks_bytes[r] > made.largest_bytes)
			made.largest_bytes = blocks_bytes[r];
		uneven |= blocks_bytes[r] != blocks_bytes[0];
	}
	if (!uneven)
		return mmc_layout_init(layout, nranks, blocks_bytes[0],
				       chunk_bytes);
	*layout = made;
	return 0;
}

size_t mmc_layout_bytes(const struct mmc_layout *layout)
{
	if (layout->equal || layout->sole)
		return 0;
	return mmc_part_bytes(layout->nranks * sizeof(struct mmc_block)) +
	       mmc_part_bytes(layout->nsenders * sizeof(uint32_t));
}

void mmc_layout_tabulate(struct mmc_layout *layout, uint8_t *memory,
			 const uint64_t *blocks_bytes)
{
	uint32_t chunk_bytes = layout->chunk_bytes;
	uint64_t offset_bytes = 0;
	struct mmc_block *blocks;
	uint32_t nsenders = 0;
	uint32_t first = 0;
	uint32_t *senders;

	if (layout->equal || layout->sole)
		return;
	blocks = mmc_part_take(&memory, layout->nranks * sizeof(*blocks));
	senders = mmc_part_take(&memory, layout->nsenders * sizeof(*senders));
	for (uint32_t r = 0; r < layout->nranks; r++) {
		uint64_t nbytes = blocks_bytes[r];
		uint64_t nchunks = chunks_of(nbytes, chunk_bytes);

		blocks[r] = (struct mmc_block){
			.offset_bytes = offset_bytes,
			.nbytes = nbytes,
			.first = first,
			.nchunks = (uint32_t)nchunks,
			.tail_bytes = tail_of(nbytes, nchunks, chunk_bytes),
			.number = nchunks > 0 ? nsenders : 0,
		};
		if (nchunks > 0)
			senders[nsenders++] = r;
		first += (uint32_t)nchunks;
		offset_bytes += nbytes;
	}
	layout->blocks = blocks;
	layout->senders = senders;
}

/*
 * Returns the block of `rank` where all but the root's are empty. Empty blocks of ranks
 * before the root lie where its block begins, those of ranks after it where its block
 * ends.
 */
static struct mmc_block sole_block(const struct mmc_layout *layout,
				   uint32_t rank)
{
	if (rank == layout->root)
		return (struct mmc_block){
			.nbytes = layout->block_bytes,
			.nchunks = layout->block_chunks,
			.tail_bytes = layout->tail_bytes,
		};
	if (rank < layout->root)
		return (struct mmc_block){ 0 };
	return (struct mmc_block){
		.offset_bytes = layout->block_bytes,
		.first = layout->block_chunks,
	};
}

struct mmc_block mmc_layout_other_block(const struct mmc_layout *layout,
					uint32_t rank)
{
	return layout->sole ? sole_block(layout, rank) : layout->blocks[rank];
}

uint32_t mmc_layout_other_owner(const struct mmc_layout *layout, uint32_t chunk)
{
	uint32_t low = 0;
	uint32_t high = layout->nsenders;

	if (layout->sole)
		return layout->root;
	/* Finds the last sender whose block begins at or before `chunk`. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (layout->blocks[layout->senders[middle]].first <= chunk)
			low = middle;
		else
			high = middle;
	}
	return layout->senders[low];
}
