/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/codec.h"

/*
 * Folds header and length to 16 bits by exclusive or: any single flipped bit,
 * and any burst of up to 16, shows.
 */
static uint64_t fold16(const struct mmc_header *header, size_t datagram_bytes)
{
	uint64_t folded = (header->channel & MMC_CHANNEL_MASK) ^
			  ((uint64_t)header->epoch << 32 | header->index) ^
			  datagram_bytes;

	folded ^= folded >> 32;
	folded ^= folded >> 16;
	return folded & 0xffff;
}

void mmc_header_encode(uint8_t *bytes, const struct mmc_header *header,
		       size_t datagram_bytes, enum mmc_checksum checksum)
{
	uint64_t channel = header->channel & MMC_CHANNEL_MASK;

	if (checksum != MMC_CHECKSUM_OFF)
		channel |= fold16(header, datagram_bytes);
	mmc_put_u64(bytes, channel);
	mmc_put_u32(bytes + 8, header->epoch);
	mmc_put_u32(bytes + 12, header->index);
}

int mmc_header_decode(struct mmc_header *header, const uint8_t *bytes,
		      size_t datagram_bytes, enum mmc_checksum checksum)
{
	size_t least_bytes = MMC_HEADER_BYTES;
	struct mmc_header read;
	uint64_t sum;

	if (checksum == MMC_CHECKSUM_FULL)
		least_bytes += MMC_CRC_BYTES;
	if (datagram_bytes < least_bytes)
		return -MMC_ESHORT;
	read = (struct mmc_header){
		.channel = mmc_get_u64(bytes),
		.epoch = mmc_get_u32(bytes + 8),
		.index = mmc_get_u32(bytes + 12),
	};
	sum = read.channel & ~MMC_CHANNEL_MASK;
	if (sum !=
	    (checksum == MMC_CHECKSUM_OFF ? 0 : fold16(&read, datagram_bytes)))
		return -MMC_ECORRUPT;
	if ((read.index & MMC_INDEX_CONTROL) && (read.index & MMC_INDEX_REPAIR))
		return -MMC_ECORRUPT;
	read.channel &= MMC_CHANNEL_MASK;
	*header = read;
	return 0;
}
