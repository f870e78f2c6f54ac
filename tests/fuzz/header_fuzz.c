/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first byte of the input chooses the checksum mode; the others are decoded as a
 * datagram's header. If they are accepted, encoding must give the very same bytes.
 */
#include "core/wire/header.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum mmc_checksum checksum;
	uint8_t again[MMC_HEADER_BYTES];
	struct mmc_header header;
	uint8_t *bytes;
	int rv;

	if (size == 0)
		return 0;
	checksum = (enum mmc_checksum)(data[0] % 3);
	size--;
	bytes = malloc(size + (size == 0));
	memcpy(bytes, data + 1, size);
	rv = mmc_header_decode(&header, bytes, size, checksum);
	if (rv == 0) {
		MMC_ASSERT((header.channel & ~MMC_CHANNEL_MASK) == 0);
		MMC_ASSERT(mmc_header_traffic(header.index) <
			   MMC_TRAFFIC_COUNT);
		mmc_header_encode(again, &header, size, checksum);
		MMC_ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
	} else {
		MMC_ASSERT(rv == -MMC_ESHORT || rv == -MMC_ECORRUPT);
	}
	free(bytes);
	return 0;
}
