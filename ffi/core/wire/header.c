/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wire/header.h"

/*
 * Folds header and length to 16 bits by exclusive or, which detects any single flipped
 * bit and any burst of up to 16. A header that holds its own checksum folds to 0.
 */
static uint16_t fold16(uint64_t channel, uint32_t epoch, uint32_t index,
		       size_t datagram_bytes)
{
	uint64_t folded = channel ^ ((uint64_t)epoch << 32 | index) ^
			  datagram_bytes;

	folded ^= folded >> 32;
	folded ^= folded >> 16;
	return (uint16_t)folded;
}

void mmc_header_encode(uint8_t *bytes, const struct mmc_header *header,
		       size_t datagram_bytes, enum mmc_checksum checksum)
{
	uint64_t channel = header->channel & MMC_CHANNEL_MASK;

	if (checksum != MMC_CHECKSUM_OFF)
		channel |= fold16(channel, header->epoch, header->index,
				  datagram_bytes);
	mmc_put_u64(bytes, channel);
	mmc_put_u32(bytes + 8, header->epoch);
	mmc_put_u32(bytes + 12, header->index);
}

int mmc_header_decode(struct mmc_header *header, const uint8_t *bytes,
		      size_t datagram_bytes, enum mmc_checksum checksum)
{
	size_t least_bytes = MMC_HEADER_BYTES;
	struct mmc_header read;
	uint16_t difference; /* of the checksum from the right one */

	if (checksum == MMC_CHECKSUM_FULL)
		least_bytes += MMC_CRC_BYTES;
	if (datagram_bytes < least_bytes)
		return -MMC_ESHORT;
	read = mmc_header_peek(bytes);
	difference = checksum == MMC_CHECKSUM_OFF
			     ? (uint16_t)read.channel
			     : fold16(read.channel, read.epoch, read.index,
				      datagram_bytes);
	if (difference != 0 ||
	    read.index >= (MMC_INDEX_CONTROL | MMC_INDEX_REPAIR))
		return -MMC_ECORRUPT;
	read.channel &= MMC_CHANNEL_MASK;
	*header = read;
	return 0;
}

struct mmc_header_template mmc_header_template(const struct mmc_header *header,
					       size_t datagram_bytes,
					       enum mmc_checksum checksum)
{
	const struct mmc_header first = { .channel = header->channel,
					  .epoch = header->epoch };
	struct mmc_header_template template;

	mmc_header_encode(template.bytes, &first, datagram_bytes, checksum);
	template.folded = (uint16_t)mmc_get_u64(template.bytes);
	template.mask = checksum == MMC_CHECKSUM_OFF ? 0 : 0xffff;
	return template;
}
