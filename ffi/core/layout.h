/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which chunk holds which bytes. Chunks number the concatenation of all blocks
 * in rank order; a block begins a chunk of its own, so its last may be short.
 */
#ifndef MMC_CORE_LAYOUT_H
#define MMC_CORE_LAYOUT_H

#include "core/types.h"

struct mmc_layout {
	uint64_t block_bytes; /* what each rank contributes */
	uint32_t chunk_bytes; /* the payload of a full datagram, not 0 */
	uint32_t block_chunks;
	uint32_t nranks;
	uint32_t nchunks;    /* of the whole operation */
	uint32_t tail_bytes; /* the payload of a block's last chunk */
};

/*
 * Lays out `nranks` blocks of `block_bytes`. Returns 0, or -MMC_EINVAL if
 * `nranks` or `chunk_bytes` is 0 or there would be more than MMC_CHUNKS_MAX.
 */
int mmc_layout_init(struct mmc_layout *layout, uint32_t nranks,
		    uint64_t block_bytes, uint32_t chunk_bytes);

/* The first chunk of a rank's block. */
static inline uint32_t mmc_layout_first(const struct mmc_layout *layout,
					uint32_t rank)
{
	return rank * layout->block_chunks;
}

/* The rank whose block holds `chunk`, which is below nchunks. */
static inline uint32_t mmc_layout_owner(const struct mmc_layout *layout,
					uint32_t chunk)
{
	return chunk / layout->block_chunks;
}

/* The payload of `chunk`, the `index`th of its block, in bytes. */
static inline uint32_t mmc_layout_payload(const struct mmc_layout *layout,
					  uint32_t index)
{
	return index + 1 == layout->block_chunks ? layout->tail_bytes
						 : layout->chunk_bytes;
}

/* Where the bytes of `chunk` begin in the concatenation of the blocks. */
static inline uint64_t mmc_layout_offset(const struct mmc_layout *layout,
					 uint32_t chunk)
{
	uint32_t owner = mmc_layout_owner(layout, chunk);
	uint32_t index = chunk - mmc_layout_first(layout, owner);

	return owner * layout->block_bytes +
	       (uint64_t)index * layout->chunk_bytes;
}

#endif
