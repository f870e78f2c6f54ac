/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/pieces.h"

#include <stddef.h>

#include "support/bits.h"

/* The pieces of each rail where blocks are of unequal sizes. */
#define UNEVEN_SHARES 4

static uint64_t block_bytes(const struct mmc_pieces *pieces, uint32_t block)
{
	return pieces->blocks_bytes != NULL ? pieces->blocks_bytes[block]
					    : pieces->block_bytes;
}

/* Returns whether parts of at most `part_bytes` fit into a slot. */
static bool fits(const struct mmc_pieces *pieces, uint64_t part_bytes,
		 uint64_t slot_bytes)
{
	uint64_t room_bytes = 0;

	for (uint32_t i = 0; i < pieces->nblocks; i++) {
		room_bytes += mmc_part_room_bytes(
			mmc_min_u64(block_bytes(pieces, i), part_bytes));
		if (room_bytes > slot_bytes)
			return false;
	}
	return true;
}

/* Returns the longest part with which those of unequal blocks fit into a slot. */
static uint64_t longest_part_bytes(const struct mmc_pieces *pieces,
				   uint64_t longest_bytes, uint64_t slot_bytes)
{
	uint64_t low = slot_bytes / pieces->nblocks / MMC_PART_ALIGN_BYTES;
	uint64_t high =
		mmc_part_room_bytes(mmc_min_u64(longest_bytes, slot_bytes)) /
		MMC_PART_ALIGN_BYTES;

	while (low < high) {
		uint64_t middle = (low + high + 1) / 2;

		if (fits(pieces, middle * MMC_PART_ALIGN_BYTES, slot_bytes))
			low = middle;
		else
			high = middle - 1;
	}
	return low * MMC_PART_ALIGN_BYTES;
}

/* Returns how many pieces the parts make. */
static uint64_t count(const struct mmc_pieces *pieces, uint64_t longest_bytes)
{
	return longest_bytes > 0 ? (longest_bytes - 1) / pieces->part_bytes + 1
				 : 1;
}

/* Shortens parts, so that all rails have pieces, and about equally many bytes. */
static void spread(struct mmc_pieces *pieces, uint64_t longest_bytes)
{
	uint64_t nworthy = pieces->total_bytes / MMC_RAIL_PIECE_BYTES_MIN;
	uint64_t nshares = mmc_min_u64(pieces->nrails, nworthy);
	uint64_t npieces = count(pieces, longest_bytes);

	if (nshares <= 1)
		return;
	/* Later pieces lack short blocks: the more they are, the less that matters. */
	if (longest_bytes * pieces->nblocks != pieces->total_bytes)
		nshares *= mmc_min_u64(UNEVEN_SHARES, nworthy / nshares);
	npieces = (npieces + nshares - 1) / nshares * nshares;
	pieces->part_bytes =
		mmc_part_room_bytes((longest_bytes - 1) / npieces + 1);
}

bool mmc_pieces_cut(struct mmc_pieces *pieces, uint64_t slot_bytes)
{
	uint64_t longest_bytes = 0;
	uint64_t npieces;

	if (pieces->blocks_bytes == NULL) {
		longest_bytes = pieces->block_bytes;
		pieces->total_bytes = pieces->nblocks * longest_bytes;
		pieces->part_bytes = slot_bytes / pieces->nblocks /
				     MMC_PART_ALIGN_BYTES *
				     MMC_PART_ALIGN_BYTES;
	} else {
		pieces->total_bytes = 0;
		for (uint32_t i = 0; i < pieces->nblocks; i++) {
			longest_bytes = mmc_max_u64(longest_bytes,
						    pieces->blocks_bytes[i]);
			pieces->total_bytes += pieces->blocks_bytes[i];
		}
		pieces->part_bytes =
			longest_part_bytes(pieces, longest_bytes, slot_bytes);
	}
	spread(pieces, longest_bytes);
	npieces = count(pieces, longest_bytes);
	pieces->npieces = (uint32_t)npieces;
	return npieces <= MMC_NODE_PIECES_MAX;
}

struct mmc_part mmc_pieces_part(const struct mmc_pieces *pieces, uint32_t piece,
				uint32_t block)
{
	uint64_t end_bytes = block_bytes(pieces, block);
	uint64_t offset_bytes =
		mmc_min_u64(piece * pieces->part_bytes, end_bytes);

	return (struct mmc_part){
		.offset_bytes = offset_bytes,
		.nbytes = mmc_min_u64(end_bytes - offset_bytes,
				      pieces->part_bytes),
	};
}
