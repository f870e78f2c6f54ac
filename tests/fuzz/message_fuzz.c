/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first byte of the input is the kind of a control message; the others are decoded
 * as such a message. If they are accepted, every field must be within its range, and
 * encoding must give the very same bytes.
 */
#include "core/wire/message.h"
#include "fuzz.h"

/* Checks that the fields of a decoded message are within their ranges. */
static void check_message(const struct mmc_message *message)
{
	bool runs = message->kind == MMC_MESSAGE_NAK ||
		    message->kind == MMC_MESSAGE_NCF ||
		    message->kind == MMC_MESSAGE_DIRECT_NAK;

	MMC_ASSERT(message->kind < MMC_MESSAGE_COUNT);
	MMC_ASSERT(message->record.entry_rounds <= MMC_ROUNDS_MAX);
	MMC_ASSERT(message->record.release_rounds <= MMC_ROUNDS_MAX);
	MMC_ASSERT(message->record.failure <= MMC_ERROR_MAX);
	MMC_ASSERT(message->nitems <= (runs ? MMC_RUNS_MAX
				       : message->kind == MMC_MESSAGE_BLOCKS
					       ? MMC_PART_BYTES
					       : MMC_CHAINS_MAX));
	MMC_ASSERT(message->kind != MMC_MESSAGE_SENT ||
		   message->nitems <= MMC_SENT_MAX);
	for (uint32_t i = 0; runs && i < message->nitems; i++) {
		MMC_ASSERT(message->runs[i].count > 0);
		MMC_ASSERT((uint64_t)message->runs[i].first +
				   message->runs[i].count <=
			   MMC_CHUNKS_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[MMC_MESSAGE_BYTES_MAX];
	struct mmc_message message;
	uint8_t *bytes;
	int rv;

	if (size == 0)
		return 0;
	size--;
	bytes = malloc(size + (size == 0));
	memcpy(bytes, data + 1, size);
	rv = mmc_message_decode(&message, data[0], bytes, size);
	if (rv == 0) {
		check_message(&message);
		MMC_ASSERT(mmc_message_bytes(&message) == size);
		mmc_message_encode(again, &message);
		MMC_ASSERT(memcmp(again, bytes, size) == 0);
	} else {
		MMC_ASSERT(rv == -MMC_ESHORT || rv == -MMC_EINVAL);
	}
	free(bytes);
	return 0;
}
