/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wire/message.h"

#include "core/wire/report.h"
#include "support/assert.h"
#include "support/memory.h"

/* The offsets of a message's fields behind the header. */
enum {
	STAMP = 0,
	ECHO = 4,
	FLAGS = 8,
	ENTRY_ROUNDS = 9,
	RELEASE_ROUNDS = 10,
	FAILURE = 11,
	CULPRIT = 12,
	SENT_CHUNKS = 16,
	SIGNATURE_MIN = 20,
	SIGNATURE_MAX = 28,
	WINDOW_BYTES = 36,
	SRTT_US = 40,
	PARITY = 44,
	LAG_EPOCHS = 45, /* three bytes */
	NITEMS = 48,
	SOURCE_BYTES = 52,
	DEAF = 56,
	LATE_RANK = 64,
	LATE_AGE_MS = 68,
	ITEMS = MMC_MESSAGE_BYTES,
};

_Static_assert(LATE_AGE_MS + 4 == ITEMS,
	       "the fixed part ends where items begin");

#define PARITY_SHIFT 24

#ifdef MMC_BARE
#define LAG_EPOCHS_MASK                                                        \
	UINT32_MAX /* no rank wants parity (core/wire/record.h) */
#else
#define LAG_EPOCHS_MASK UINT32_C(0xffffff)
#endif

/* The offsets of an advert's fields in the items. */
#define ADVERT_GENERATION 0
#define ADVERT_MAP_ADDRESS 8
#define ADVERT_DATA_ADDRESS 16
#define ADVERT_MAP_KEY 24
#define ADVERT_DATA_KEY 28
#define ADVERT_HAS_DATA 32
#define ADVERT_BYTES 36

static bool has_runs(uint32_t kind)
{
	return kind == MMC_MESSAGE_NAK || kind == MMC_MESSAGE_NCF ||
	       kind == MMC_MESSAGE_DIRECT_NAK;
}

static bool is_report(uint32_t kind)
{
	return kind == MMC_MESSAGE_REPORT || kind == MMC_MESSAGE_WATERMARK;
}

/* Returns the length of an item: an advert, a byte, or two numbers of 4 bytes. */
static size_t item_bytes(uint32_t kind)
{
	if (kind == MMC_MESSAGE_BLOCKS)
		return 1;
	return kind == MMC_MESSAGE_ADVERT ? ADVERT_BYTES : 8;
}

static uint32_t items_max(uint32_t kind)
{
	if (has_runs(kind))
		return MMC_RUNS_MAX;
	if (kind == MMC_MESSAGE_ADVERT)
		return 1;
	if (kind == MMC_MESSAGE_BLOCKS)
		return MMC_PART_BYTES;
	return kind == MMC_MESSAGE_SENT ? MMC_SENT_MAX : 0;
}

/* Returns how many bytes follow those that all messages have. */
static size_t items_bytes(uint32_t kind, uint32_t nitems)
{
	size_t head_bytes = kind == MMC_MESSAGE_BLOCKS ? MMC_PART_HEAD_BYTES
						       : 0;

	return head_bytes + nitems * item_bytes(kind);
}

size_t mmc_message_bytes(const struct mmc_message *message)
{
	if (is_report(message->kind))
		return mmc_report_bytes(message);
	return ITEMS + items_bytes(message->kind, message->nitems);
}

static void encode_record(uint8_t *bytes, const struct mmc_record *record)
{
	bytes[FLAGS] = record->flags;
	bytes[ENTRY_ROUNDS] = record->entry_rounds;
	bytes[RELEASE_ROUNDS] = record->release_rounds;
	bytes[FAILURE] = record->failure;
	mmc_put_u32(bytes + CULPRIT, record->culprit);
	mmc_put_u32(bytes + SENT_CHUNKS, record->sent_chunks);
	mmc_put_u64(bytes + SIGNATURE_MIN, record->terms.signature_min);
	mmc_put_u64(bytes + SIGNATURE_MAX, record->terms.signature_max);
	mmc_put_u32(bytes + WINDOW_BYTES, record->terms.window_bytes);
	mmc_put_u32(bytes + SOURCE_BYTES, record->terms.source_bytes);
	mmc_put_u32(bytes + SRTT_US, record->terms.srtt_us);
	mmc_put_u32(bytes + PARITY,
		    record->terms.lag_epochs | mmc_terms_wanted(&record->terms)
						       << PARITY_SHIFT);
	mmc_put_u64(bytes + DEAF, record->terms.deaf);
}

static void decode_record(struct mmc_record *record, const uint8_t *bytes)
{
	uint32_t word = mmc_get_u32(bytes + PARITY);

	*record = (struct mmc_record){
		.flags = bytes[FLAGS],
		.entry_rounds = bytes[ENTRY_ROUNDS],
		.release_rounds = bytes[RELEASE_ROUNDS],
		.failure = bytes[FAILURE],
		.culprit = mmc_get_u32(bytes + CULPRIT),
		.sent_chunks = mmc_get_u32(bytes + SENT_CHUNKS),
		.terms = {
			.signature_min = mmc_get_u64(bytes + SIGNATURE_MIN),
			.signature_max = mmc_get_u64(bytes + SIGNATURE_MAX),
			.window_bytes = mmc_get_u32(bytes + WINDOW_BYTES),
			.source_bytes = mmc_get_u32(bytes + SOURCE_BYTES),
			.srtt_us = mmc_get_u32(bytes + SRTT_US),
			.lag_epochs = word & LAG_EPOCHS_MASK,
			.deaf = mmc_get_u64(bytes + DEAF),
		},
	};
	mmc_terms_want(&record->terms, word >> PARITY_SHIFT);
}

static void encode_advert(uint8_t *bytes, const struct mmc_advert *advert)
{
	mmc_put_u64(bytes + ADVERT_GENERATION, advert->generation);
	mmc_put_u64(bytes + ADVERT_MAP_ADDRESS, advert->map_address);
	mmc_put_u64(bytes + ADVERT_DATA_ADDRESS, advert->data_address);
	mmc_put_u32(bytes + ADVERT_MAP_KEY, advert->map_key);
	mmc_put_u32(bytes + ADVERT_DATA_KEY, advert->data_key);
	mmc_put_u32(bytes + ADVERT_HAS_DATA, advert->has_data);
}

static void decode_advert(struct mmc_advert *advert, const uint8_t *bytes)
{
	*advert = (struct mmc_advert){
		.generation = mmc_get_u64(bytes + ADVERT_GENERATION),
		.map_address = mmc_get_u64(bytes + ADVERT_MAP_ADDRESS),
		.data_address = mmc_get_u64(bytes + ADVERT_DATA_ADDRESS),
		.map_key = mmc_get_u32(bytes + ADVERT_MAP_KEY),
		.data_key = mmc_get_u32(bytes + ADVERT_DATA_KEY),
		.has_data = mmc_get_u32(bytes + ADVERT_HAS_DATA) != 0,
	};
}

static void encode_items(uint8_t *bytes, const struct mmc_message *message)
{
	for (uint32_t i = 0; i < message->nitems; i++) {
		uint8_t *item = bytes + i * item_bytes(message->kind);

		if (has_runs(message->kind)) {
			mmc_put_u32(item, message->runs[i].first);
			mmc_put_u32(item + 4, message->runs[i].count);
		} else if (message->kind == MMC_MESSAGE_SENT) {
			mmc_put_u32(item, message->sent[i].rank);
			mmc_put_u32(item + 4, message->sent[i].nchunks);
		} else {
			encode_advert(item, &message->advert);
		}
	}
}

void mmc_message_encode(uint8_t *bytes, const struct mmc_message *message)
{
	if (is_report(message->kind)) {
		mmc_report_encode(bytes, message);
		return;
	}
	MMC_ASSERT(message->nitems <= items_max(message->kind));
	mmc_put_u32(bytes + STAMP, message->stamp_us);
	mmc_put_u32(bytes + ECHO, message->echo_us);
	encode_record(bytes, &message->record);
	mmc_put_u32(bytes + LATE_RANK, message->late_rank);
	mmc_put_u32(bytes + LATE_AGE_MS, message->late_age_ms);
	mmc_put_u32(bytes + NITEMS, message->nitems);
	if (message->kind != MMC_MESSAGE_BLOCKS) {
		encode_items(bytes + ITEMS, message);
		return;
	}
	mmc_message_set_part(bytes, message->part.first, message->nitems);
	if (message->part.bytes != NULL)
		memcpy(bytes + ITEMS + MMC_PART_HEAD_BYTES, message->part.bytes,
		       message->nitems);
}

void mmc_message_set_part(uint8_t *bytes, uint32_t first, uint32_t nbytes)
{
	mmc_put_u32(bytes + NITEMS, nbytes);
	mmc_put_u32(bytes + ITEMS, first);
}

/* Returns whether a record has known flags only, and each field a possible value. */
static bool record_is_sane(const uint8_t *bytes)
{
	const unsigned known = MMC_RECORD_ENTERED | MMC_RECORD_DONE |
			       MMC_RECORD_CLOSED | MMC_RECORD_FAILED |
			       MMC_RECORD_LEFT;
	const bool left = (bytes[FLAGS] & MMC_RECORD_LEFT) != 0;

	return (bytes[FLAGS] & ~known) == 0 &&
	       (!left || bytes[FLAGS] == MMC_RECORD_LEFT) &&
	       bytes[ENTRY_ROUNDS] <= MMC_ROUNDS_MAX &&
	       bytes[RELEASE_ROUNDS] <= MMC_ROUNDS_MAX &&
	       bytes[FAILURE] <= MMC_ERROR_MAX &&
	       !(bytes[FLAGS] & MMC_RECORD_FAILED) == (bytes[FAILURE] == 0);
}

/* Returns whether a run ends below MMC_CHUNKS_MAX, so that its end never wraps. */
static bool run_is_sane(struct mmc_run run)
{
	return run.count > 0 && run.first < MMC_CHUNKS_MAX &&
	       run.count <= MMC_CHUNKS_MAX - run.first;
}

/* Returns whether there is one advert, whose `has_data` is 0 or 1. */
static bool advert_is_sane(const uint8_t *bytes, uint32_t nitems)
{
	return nitems == 1 && mmc_get_u32(bytes + ADVERT_HAS_DATA) <= 1;
}

/* Reads all items but adverts; returns whether each is possible. */
static bool decode_items(struct mmc_message *message, const uint8_t *bytes)
{
	if (message->kind == MMC_MESSAGE_BLOCKS) {
		message->part.first = mmc_get_u32(bytes);
		message->part.bytes = bytes + MMC_PART_HEAD_BYTES;
		return true;
	}
	for (uint32_t i = 0; i < message->nitems; i++) {
		const uint8_t *item = bytes + i * item_bytes(message->kind);

		if (message->kind == MMC_MESSAGE_SENT) {
			message->sent[i].rank = mmc_get_u32(item);
			message->sent[i].nchunks = mmc_get_u32(item + 4);
			continue;
		}
		message->runs[i].first = mmc_get_u32(item);
		message->runs[i].count = mmc_get_u32(item + 4);
		if (!run_is_sane(message->runs[i]))
			return false;
	}
	return true;
}

/* Reads a message that is no report into `message`, whose kind is set already. */
static int decode_whole(struct mmc_message *message, const uint8_t *bytes,
			size_t nbytes)
{
	uint32_t kind = message->kind;

	if (nbytes < ITEMS)
		return -MMC_ESHORT;
	message->nitems = mmc_get_u32(bytes + NITEMS);
	if (message->nitems > items_max(kind) || !record_is_sane(bytes))
		return -MMC_EINVAL;
	if (nbytes != ITEMS + items_bytes(kind, message->nitems))
		return -MMC_ESHORT;
	message->stamp_us = mmc_get_u32(bytes + STAMP);
	message->echo_us = mmc_get_u32(bytes + ECHO);
	decode_record(&message->record, bytes);
	message->late_rank = mmc_get_u32(bytes + LATE_RANK);
	message->late_age_ms = mmc_get_u32(bytes + LATE_AGE_MS);
	if (kind != MMC_MESSAGE_ADVERT)
		return decode_items(message, bytes + ITEMS) ? 0 : -MMC_EINVAL;
	if (!advert_is_sane(bytes + ITEMS, message->nitems))
		return -MMC_EINVAL;
	decode_advert(&message->advert, bytes + ITEMS);
	return 0;
}

int mmc_message_decode(struct mmc_message *message, uint32_t kind,
		       const uint8_t *bytes, size_t nbytes)
{
	struct mmc_message read;
	int rv;

	if (kind >= MMC_MESSAGE_COUNT)
		return -MMC_EINVAL;
	read.kind = (enum mmc_message_kind)kind;
	rv = is_report(kind) ? mmc_report_decode(&read, bytes, nbytes)
			     : decode_whole(&read, bytes, nbytes);
	if (rv == 0)
		*message = read;
	return rv;
}
