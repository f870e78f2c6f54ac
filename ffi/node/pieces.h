/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an operation is cut into pieces: each takes the next part of every block, of at
 * most `part_bytes`, and all its parts together fit into a slot. Within a slot the parts
 * lie node by node, and within a node in rank order, each from a multiple of
 * MMC_PART_ALIGN_BYTES on. So a node's parts are one range, which its leader sends.
 */
#ifndef MMC_NODE_PIECES_H
#define MMC_NODE_PIECES_H

#include <stdbool.h>
#include <stdint.h>

/* The most pieces of an operation, so that cursors tell apart those in flight. */
#define MMC_NODE_PIECES_MAX (UINT32_C(1) << 30)

/*
 * The least that is worth a piece for another rail's sake. Shorter ones would take about as
 * long, since each piece has its barriers.
 */
#define MMC_RAIL_PIECE_BYTES_MIN (UINT64_C(32) << 10)

/* A cache line: members that write their parts then share none. */
#define MMC_PART_ALIGN_BYTES 64

/* The blocks of an operation, as pieces are cut from them. */
struct mmc_pieces {
	uint64_t block_bytes; /* each block's size, if `blocks_bytes` is NULL */
	const uint64_t *blocks_bytes; /* [nblocks] */
	uint32_t nblocks;	      /* 1 for a Bcast */
	uint32_t nrails;	      /* which carry pieces in turn */
	uint64_t total_bytes;	      /* of all blocks */
	uint64_t part_bytes;
	uint32_t npieces; /* at least 1 */
};

/* The part of one block that a piece takes. */
struct mmc_part {
	uint64_t offset_bytes; /* in the block */
	uint64_t nbytes;       /* 0: the block has ended before */
};

/*
 * Sets `total_bytes`, `part_bytes` and `npieces` for blocks whose sizes are set, and for slots of
 * `slot_bytes`, which hold at least MMC_PART_ALIGN_BYTES of each block. Where there are
 * enough bytes, each rail gets as many pieces as any other. Returns false if there would
 * be more than MMC_NODE_PIECES_MAX pieces.
 */
bool mmc_pieces_cut(struct mmc_pieces *pieces, uint64_t slot_bytes);

/* Returns what piece number `piece` takes of block number `block`. */
struct mmc_part mmc_pieces_part(const struct mmc_pieces *pieces, uint32_t piece,
				uint32_t block);

/* Returns how many bytes of a slot a part of `nbytes` takes. */
static inline uint64_t mmc_part_room_bytes(uint64_t nbytes)
{
	return (nbytes + MMC_PART_ALIGN_BYTES - 1) &
	       ~(uint64_t)(MMC_PART_ALIGN_BYTES - 1);
}

#endif
