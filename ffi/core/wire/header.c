/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wire/header.h"

struct mmc_header_words mmc_header_words_by_byte(const uint8_t *bytes)
{
	return (struct mmc_header_words){
		.channel = mmc_get_u64(bytes),
		.rest = mmc_get_u64(bytes + 8),
	};
}

/*
 * Folds header and length, combined by exclusive or, to the low 16 bits. That detects any
 * single flipped bit and any burst of up to 16. A header that holds its own checksum
 * folds to 0.
 */
static uint64_t fold(uint64_t header)
{
	header ^= header >> 32;
	return header ^ header >> 16;
}

void mmc_header_encode(uint8_t *bytes, const struct mmc_header *header,
		       size_t datagram_bytes, enum mmc_checksum checksum)
{
	uint64_t channel = header->channel & MMC_CHANNEL_MASK;
	uint64_t rest = (uint64_t)header->epoch << 32 | header->index;

	if (checksum != MMC_CHECKSUM_OFF)
		channel |= (uint16_t)fold(channel ^ rest ^ datagram_bytes);
	mmc_put_u64(bytes, channel);
	mmc_put_u32(bytes + 8, header->epoch);
	mmc_put_u32(bytes + 12, header->index);
}

int mmc_header_decode(struct mmc_header *header, const uint8_t *bytes,
		      size_t datagram_bytes, enum mmc_checksum checksum)
{
	size_t least_bytes = checksum == MMC_CHECKSUM_FULL
				     ? MMC_HEADER_BYTES + MMC_CRC_BYTES
				     : MMC_HEADER_BYTES;
	struct mmc_header_words words;
	uint64_t
		difference; /* its low 16 bits: of the checksum from the right one */

	if (datagram_bytes < least_bytes)
		return -MMC_ESHORT;
	words = mmc_header_words(bytes);
	difference =
		checksum == MMC_CHECKSUM_OFF
			? words.channel
			: fold(words.channel ^ words.rest ^ datagram_bytes);
	if ((uint16_t)difference != 0)
		return -MMC_ECORRUPT;
	header->channel = words.channel & MMC_CHANNEL_MASK;
	header->epoch = (uint32_t)(words.rest >> 32);
	header->index = (uint32_t)words.rest;
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
	template.words.channel = mmc_get_u64(template.bytes);
	template.words.rest = (uint64_t)header->epoch << 32;
	template.mask = checksum == MMC_CHECKSUM_OFF ? 0 : 0xffff;
	return template;
}
