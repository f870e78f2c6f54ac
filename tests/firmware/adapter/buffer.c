/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/tag.h"

/* Returns whether a block lies in the host's memory. */
static bool is_hosts(const struct mmc_nic *nic,
		     const struct mmc_nic_block *block)
{
	uint64_t at = block->offset - nic->region_offset;

	return block->nbytes == 0 || (at < nic->region_bytes &&
				      block->nbytes <= nic->region_bytes - at);
}

int buffer_register(struct buffer *buffer, const struct mmc_nic *nic,
		    const struct mmc_nic_buffer *told,
		    const struct mmc_nic_block *table, uint32_t nblocks)
{
	struct mmc_nic_block *blocks;
	bool good = true;

	if (buffer->blocks != NULL)
		return -MMC_EINVAL;
	blocks = malloc(nblocks * sizeof(*blocks));
	if (blocks == NULL)
		return -MMC_ENOMEM;
	/* What has been copied is checked: the firmware may change the table meanwhile. */
	memcpy(blocks, table, nblocks * sizeof(*blocks));
	for (uint32_t r = 0; r < nblocks; r++)
		good &= is_hosts(nic, &blocks[r]);
	if (!good) {
		free(blocks);
		return -MMC_EINVAL;
	}
	*buffer = (struct buffer){ *told, blocks, nblocks };
	return 0;
}

void buffer_deregister(struct buffer *buffer)
{
	free(buffer->blocks);
	buffer->blocks = NULL;
}

uint64_t buffer_place(const struct buffer *buffer,
		      const struct mmc_event *datagram,
		      enum mmc_checksum checksum, struct mmc_header *header)
{
	if (buffer->blocks == NULL || datagram->source >= buffer->nblocks ||
	    mmc_header_decode(header, datagram->bytes, datagram->nbytes,
			      checksum) != 0)
		return 0;
	return mmc_tag_place(&buffer->told, &buffer->blocks[datagram->source],
			     header, datagram->nbytes - MMC_HEADER_BYTES);
}
