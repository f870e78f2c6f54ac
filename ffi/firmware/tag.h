/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether a datagram carries the tag of a registered buffer (mpimcast/abi/nic.h). */
#ifndef MMC_FIRMWARE_TAG_H
#define MMC_FIRMWARE_TAG_H

#include <mpimcast/abi/nic.h>

#include "core/wire/header.h"
#include "support/bits.h"

/* Returns how long the payload of a chunk is, which is one of the block's. */
static inline uint32_t mmc_tag_bytes(const struct mmc_nic_buffer *buffer,
				     const struct mmc_nic_block *block,
				     uint32_t chunk)
{
	uint64_t at = (uint64_t)(chunk - block->first) * buffer->chunk_bytes;

	return (uint32_t)mmc_min_u64(buffer->chunk_bytes, block->nbytes - at);
}

/*
 * Returns at which offset the payload belongs, `nbytes` long, of a datagram with this header
 * from the sender whose block is `block`; 0 if it does not belong in the buffer. No block
 * begins at 0, where the memory of the adapter's own program lies.
 */
static inline uint64_t mmc_tag_place(const struct mmc_nic_buffer *buffer,
				     const struct mmc_nic_block *block,
				     const struct mmc_header *header,
				     uint64_t nbytes)
{
	/*
	 * It lies behind the block if the chunk does; if the chunk comes before the block,
	 * since the difference wraps; and if this is a repair or a message, whose index is
	 * higher than that of any chunk.
	 */
	uint64_t at =
		(uint64_t)(header->index - block->first) * buffer->chunk_bytes;

	if (header->epoch != buffer->epoch ||
	    (header->channel & MMC_CHANNEL_MASK) != buffer->channel ||
	    at >= block->nbytes ||
	    nbytes != mmc_min_u64(buffer->chunk_bytes, block->nbytes - at))
		return 0;
	return block->offset + at;
}

#endif
