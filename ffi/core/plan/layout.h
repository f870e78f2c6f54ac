/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps chunks to bytes. All blocks, laid end to end in rank order, are cut into chunks,
 * which are numbered from 0 on. Each block begins a new chunk, so the last chunk of a
 * block may be short. An empty block has no chunk; the ranks whose blocks are not empty
 * are the senders, which are numbered in rank order.
 *
 * Where a block lies is calculated if all blocks are equal or a single rank has all
 * bytes. Otherwise blocks are uneven, and a table tells.
 */
#ifndef MMC_CORE_PLAN_LAYOUT_H
#define MMC_CORE_PLAN_LAYOUT_H

#include "core/types.h"

/* The block of one rank. */
struct mmc_block {
	uint64_t offset_bytes; /* where it begins in all blocks end to end */
	uint64_t nbytes;
	uint32_t first; /* the first of its chunks */
	uint32_t nchunks;
	uint32_t tail_bytes; /* the payload of its last chunk */
	uint32_t number; /* the rank's number as a sender; 0 if it is none */
};

struct mmc_layout {
	uint64_t block_bytes;	/* the block of each sender, unless uneven */
	uint64_t total_bytes;	/* all blocks together */
	uint64_t largest_bytes; /* the largest of all blocks */
	uint32_t chunk_bytes;	/* the payload of a full datagram, not 0 */
	uint32_t nranks;
	uint32_t nsenders;
	uint32_t nchunks;      /* the chunks of the whole operation */
	uint32_t block_chunks; /* the chunks of each sender, unless uneven */
	/* The payload of a block's last chunk, unless uneven. */
	uint32_t tail_bytes;
	uint32_t root; /* the only sender, if `sole` */
	bool equal;    /* all blocks have the same size */
	bool sole;     /* all other blocks than `root`'s are empty */
	const struct mmc_block *blocks; /* [nranks], if uneven */
	const uint32_t *senders;	/* [nsenders] ranks, if uneven */
};

/*
 * Lays out one block of `block_bytes` for each of `nranks` ranks. Returns 0, or
 * -MMC_EINVAL if `nranks` or `chunk_bytes` is 0 or there would be more than
 * MMC_CHUNKS_MAX chunks.
 */
int mmc_layout_init(struct mmc_layout *layout, uint32_t nranks,
		    uint64_t block_bytes, uint32_t chunk_bytes);

/*
 * Lays out a block of `block_bytes` for `root`, which is below `nranks`, and an empty
 * block for each other rank. Returns 0, or -MMC_EINVAL if `nranks` or `chunk_bytes` is
 * 0 or there would be more than MMC_CHUNKS_MAX chunks.
 */
int mmc_layout_init_sole(struct mmc_layout *layout, uint32_t nranks,
			 uint32_t root, uint64_t block_bytes,
			 uint32_t chunk_bytes);

/*
 * Lays out a block of `blocks_bytes[r]` for each rank r. Returns 0, or -MMC_EINVAL if
 * `nranks` or `chunk_bytes` is 0 or there would be more than MMC_CHUNKS_MAX chunks. If
 * blocks are uneven, only the fields that count something are set:
 * mmc_layout_tabulate() must be called before the layout is asked where a block lies.
 */
int mmc_layout_init_each(struct mmc_layout *layout, uint32_t nranks,
			 const uint64_t *blocks_bytes, uint32_t chunk_bytes);

/* Returns the bytes of memory that the table takes; 0 unless blocks are uneven. */
size_t mmc_layout_bytes(const struct mmc_layout *layout);

/*
 * Writes the table to `memory`, mmc_layout_bytes() long, which must outlive the layout
 * and its copies. Does nothing unless blocks are uneven.
 */
void mmc_layout_tabulate(struct mmc_layout *layout, uint8_t *memory,
			 const uint64_t *blocks_bytes);

/*
 * Do what mmc_layout_block() and mmc_layout_owner() do where blocks are not all equal.
 */
struct mmc_block mmc_layout_other_block(const struct mmc_layout *layout,
					uint32_t rank);
uint32_t mmc_layout_other_owner(const struct mmc_layout *layout,
				uint32_t chunk);

/* Returns the block of `rank`. */
static inline struct mmc_block mmc_layout_block(const struct mmc_layout *layout,
						uint32_t rank)
{
	if (!layout->equal)
		return mmc_layout_other_block(layout, rank);
	return (struct mmc_block){
		.offset_bytes = rank * layout->block_bytes,
		.nbytes = layout->block_bytes,
		.first = rank * layout->block_chunks,
		.nchunks = layout->block_chunks,
		.tail_bytes = layout->tail_bytes,
		.number = rank,
	};
}

/* Returns the rank whose block holds `chunk`, which is below nchunks. */
static inline uint32_t mmc_layout_owner(const struct mmc_layout *layout,
					uint32_t chunk)
{
	return layout->equal ? chunk / layout->block_chunks
			     : mmc_layout_other_owner(layout, chunk);
}

/* Returns the rank of the sender with this number. */
static inline uint32_t mmc_layout_sender(const struct mmc_layout *layout,
					 uint32_t number)
{
	if (layout->equal)
		return number;
	return layout->sole ? layout->root : layout->senders[number];
}

/* Returns the payload, in bytes, of chunk number `place`, from 0, of `block`. */
static inline uint32_t mmc_layout_block_payload(const struct mmc_layout *layout,
						const struct mmc_block *block,
						uint32_t place)
{
	return place + 1 == block->nchunks ? block->tail_bytes
					   : layout->chunk_bytes;
}

/* Returns the payload of `chunk`, in bytes. */
static inline uint32_t mmc_layout_payload(const struct mmc_layout *layout,
					  uint32_t chunk)
{
	const struct mmc_block block =
		mmc_layout_block(layout, mmc_layout_owner(layout, chunk));

	return mmc_layout_block_payload(layout, &block, chunk - block.first);
}

/* Returns where the bytes of `chunk` begin in all blocks end to end. */
static inline uint64_t mmc_layout_offset(const struct mmc_layout *layout,
					 uint32_t chunk)
{
	const struct mmc_block block =
		mmc_layout_block(layout, mmc_layout_owner(layout, chunk));

	return block.offset_bytes +
	       (uint64_t)(chunk - block.first) * layout->chunk_bytes;
}

#endif
