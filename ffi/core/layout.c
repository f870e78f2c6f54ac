/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/layout.h"

int mmc_layout_init(struct mmc_layout *layout, uint32_t nranks,
		    uint64_t block_bytes, uint32_t chunk_bytes)
{
	uint64_t block_chunks;

	if (nranks == 0 || chunk_bytes == 0)
		return -MMC_EINVAL;
	block_chunks =
		block_bytes / chunk_bytes + (block_bytes % chunk_bytes != 0);
	if (block_chunks > MMC_CHUNKS_MAX / nranks)
		return -MMC_EINVAL;
	*layout = (struct mmc_layout){
		.block_bytes = block_bytes,
		.chunk_bytes = chunk_bytes,
		.block_chunks = (uint32_t)block_chunks,
		.nranks = nranks,
		.nchunks = (uint32_t)block_chunks * nranks,
	};
	if (block_chunks != 0)
		layout->tail_bytes =
			(uint32_t)(block_bytes -
				   (block_chunks - 1) * chunk_bytes);
	return 0;
}
