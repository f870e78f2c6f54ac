/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wire/report.h"

#include "core/wire/varint.h"
#include "support/assert.h"

/* Returns a position as it is sent. */
static uint32_t position_of(const struct mmc_message *message, uint32_t i)
{
	return mmc_min_u32(message->positions[i], MMC_VARINT_MAX);
}

static uint32_t least_position(const struct mmc_message *message)
{
	uint32_t least = message->nitems == 0 ? 0 : MMC_VARINT_MAX;

	for (uint32_t i = 0; i < message->nitems; i++)
		least = mmc_min_u32(least, message->positions[i]);
	return least;
}

static uint32_t sent_chunks(const struct mmc_message *message)
{
	return mmc_min_u32(message->record.sent_chunks, MMC_VARINT_MAX);
}

size_t mmc_report_bytes(const struct mmc_message *message)
{
	uint32_t least = least_position(message);
	size_t nbytes = mmc_varint_bytes(message->nitems) +
			mmc_varint_bytes(sent_chunks(message)) +
			mmc_varint_bytes(least);

	for (uint32_t i = 0; i < message->nitems; i++)
		nbytes += mmc_varint_bytes(position_of(message, i) - least);
	return nbytes;
}

void mmc_report_encode(uint8_t *bytes, const struct mmc_message *message)
{
	uint32_t least = least_position(message);

	MMC_ASSERT(message->nitems <= MMC_CHAINS_MAX);
	bytes = mmc_varint_put(bytes, message->nitems);
	bytes = mmc_varint_put(bytes, sent_chunks(message));
	bytes = mmc_varint_put(bytes, least);
	for (uint32_t i = 0; i < message->nitems; i++)
		bytes = mmc_varint_put(bytes, position_of(message, i) - least);
}

/* Reads the positions, which are sent less `least`; one of them must equal it. */
static int decode_positions(struct mmc_message *message, const uint8_t **bytes,
			    const uint8_t *end, uint32_t least)
{
	bool least_found = message->nitems == 0 && least == 0;

	for (uint32_t i = 0; i < message->nitems; i++) {
		uint32_t above;
		int rv = mmc_varint_take(bytes, end, &above);

		if (rv != 0)
			return rv;
		if (above > MMC_VARINT_MAX - least)
			return -MMC_EINVAL;
		message->positions[i] = least + above;
		least_found |= above == 0;
	}
	return least_found ? 0 : -MMC_EINVAL;
}

int mmc_report_decode(struct mmc_message *message, const uint8_t *bytes,
		      size_t nbytes)
{
	const uint8_t *end = bytes + nbytes;
	uint32_t least = 0;
	int rv;

	message->stamp_us = 0;
	message->echo_us = 0;
	message->record = (struct mmc_record){ .culprit = MMC_PEER_NONE };
	message->late_rank = MMC_PEER_NONE;
	message->late_age_ms = 0;
	rv = mmc_varint_take(&bytes, end, &message->nitems);
	if (rv == 0 && message->nitems > MMC_CHAINS_MAX)
		rv = -MMC_EINVAL;
	if (rv == 0)
		rv = mmc_varint_take(&bytes, end, &message->record.sent_chunks);
	if (rv == 0)
		rv = mmc_varint_take(&bytes, end, &least);
	if (rv == 0)
		rv = decode_positions(message, &bytes, end, least);
	if (rv == 0 && bytes != end)
		rv = -MMC_ESHORT;
	return rv;
}
