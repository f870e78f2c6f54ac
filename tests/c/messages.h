/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws random messages of every kind but reports, decodes them, and compares two. */
#ifndef MMC_TESTS_MESSAGES_H
#define MMC_TESTS_MESSAGES_H

#include "check.h"
#include "core/wire/message.h"
#include "support/prng.h"

#define BYTES_MAX (MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES)

static inline uint32_t items_max(uint32_t kind)
{
	static const uint32_t max[MMC_MESSAGE_COUNT] = {
		[MMC_MESSAGE_RECORD] = 0,
		[MMC_MESSAGE_NAK] = MMC_RUNS_MAX,
		[MMC_MESSAGE_NCF] = MMC_RUNS_MAX,
		[MMC_MESSAGE_DIRECT_NAK] = MMC_RUNS_MAX,
		[MMC_MESSAGE_ADVERT] = 1,
		[MMC_MESSAGE_SENT] = MMC_SENT_MAX,
	};

	return max[kind];
}

static inline uint32_t items_min(uint32_t kind)
{
	return kind == MMC_MESSAGE_ADVERT ? 1 : 0;
}

/* Reports and watermarks have a test of their own, report_test.c. */
static inline bool is_report(uint32_t kind)
{
	return kind == MMC_MESSAGE_REPORT || kind == MMC_MESSAGE_WATERMARK;
}

static inline bool has_runs(uint32_t kind)
{
	return kind == MMC_MESSAGE_NAK || kind == MMC_MESSAGE_NCF ||
	       kind == MMC_MESSAGE_DIRECT_NAK;
}

static inline struct mmc_run random_run(struct mmc_prng *prng)
{
	struct mmc_run run = {
		.first = (uint32_t)mmc_prng_below(prng, MMC_CHUNKS_MAX),
	};

	run.count =
		1 + (uint32_t)mmc_prng_below(prng, MMC_CHUNKS_MAX - run.first);
	return run;
}

static inline struct mmc_advert random_advert(struct mmc_prng *prng)
{
	return (struct mmc_advert){
		.generation = mmc_prng_next(prng),
		.map_address = mmc_prng_next(prng),
		.data_address = mmc_prng_next(prng),
		.map_key = (uint32_t)mmc_prng_next(prng),
		.data_key = (uint32_t)mmc_prng_next(prng),
		.has_data = mmc_prng_below(prng, 2) != 0,
	};
}

static inline struct mmc_message random_message(struct mmc_prng *prng,
						uint32_t kind, uint32_t nitems)
{
	struct mmc_message message = {
		.kind = (enum mmc_message_kind)kind,
		.stamp_us = (uint32_t)mmc_prng_next(prng),
		.echo_us = (uint32_t)mmc_prng_next(prng),
		.record = {
			.flags = (uint8_t)mmc_prng_below(prng, 8),
			.entry_rounds = (uint8_t)mmc_prng_below(prng, 21),
			.release_rounds = (uint8_t)mmc_prng_below(prng, 21),
			.culprit = (uint32_t)mmc_prng_next(prng),
			.sent_chunks = (uint32_t)mmc_prng_next(prng),
			.terms = {
				.signature_min = mmc_prng_next(prng),
				.signature_max = mmc_prng_next(prng),
				.window_bytes = (uint32_t)mmc_prng_next(prng),
				.source_bytes = (uint32_t)mmc_prng_next(prng),
				.srtt_us = (uint32_t)mmc_prng_next(prng),
				.lag_epochs = (uint32_t)mmc_prng_below(
					prng, 1 << 24),
				.parity = (uint8_t)mmc_prng_next(prng),
				.deaf = mmc_prng_next(prng),
			},
		},
		.late_rank = (uint32_t)mmc_prng_next(prng),
		.late_age_ms = (uint32_t)mmc_prng_next(prng),
		.nitems = nitems,
	};

	if (mmc_prng_chance(prng, UINT64_C(1) << 31)) {
		message.record.flags |= MMC_RECORD_FAILED;
		message.record.failure =
			(uint8_t)(1 + mmc_prng_below(prng, MMC_ERROR_MAX));
	}
	for (uint32_t i = 0; i < nitems; i++)
		if (kind == MMC_MESSAGE_ADVERT)
			message.advert = random_advert(prng);
		else if (has_runs(kind))
			message.runs[i] = random_run(prng);
		else
			message.sent[i] = (struct mmc_sent){
				(uint32_t)mmc_prng_next(prng),
				(uint32_t)mmc_prng_next(prng),
			};
	return message;
}

static inline void check_equal_records(const struct mmc_record *a,
				       const struct mmc_record *b)
{
	CHECK_EQ(a->flags, b->flags);
	CHECK_EQ(a->entry_rounds, b->entry_rounds);
	CHECK_EQ(a->release_rounds, b->release_rounds);
	CHECK_EQ(a->failure, b->failure);
	CHECK_EQ(a->culprit, b->culprit);
	CHECK_EQ(a->sent_chunks, b->sent_chunks);
	CHECK_EQ(a->terms.signature_min, b->terms.signature_min);
	CHECK_EQ(a->terms.signature_max, b->terms.signature_max);
	CHECK_EQ(a->terms.window_bytes, b->terms.window_bytes);
	CHECK_EQ(a->terms.source_bytes, b->terms.source_bytes);
	CHECK_EQ(a->terms.srtt_us, b->terms.srtt_us);
	CHECK_EQ(a->terms.lag_epochs, b->terms.lag_epochs);
	CHECK_EQ(a->terms.parity, b->terms.parity);
	CHECK_EQ(a->terms.deaf, b->terms.deaf);
}

static inline void check_equal_adverts(const struct mmc_advert *a,
				       const struct mmc_advert *b)
{
	CHECK_EQ(a->generation, b->generation);
	CHECK_EQ(a->map_address, b->map_address);
	CHECK_EQ(a->data_address, b->data_address);
	CHECK_EQ(a->map_key, b->map_key);
	CHECK_EQ(a->data_key, b->data_key);
	CHECK_EQ(a->has_data, b->has_data);
}

static inline void check_equal_messages(const struct mmc_message *a,
					const struct mmc_message *b)
{
	CHECK_EQ(a->kind, b->kind);
	CHECK_EQ(a->stamp_us, b->stamp_us);
	CHECK_EQ(a->echo_us, b->echo_us);
	check_equal_records(&a->record, &b->record);
	CHECK_EQ(a->late_rank, b->late_rank);
	CHECK_EQ(a->late_age_ms, b->late_age_ms);
	CHECK_EQ(a->nitems, b->nitems);
	if (a->kind == MMC_MESSAGE_ADVERT) {
		check_equal_adverts(&a->advert, &b->advert);
		return;
	}
	for (uint32_t i = 0; i < a->nitems; i++) {
		if (a->kind == MMC_MESSAGE_SENT) {
			CHECK_EQ(a->sent[i].rank, b->sent[i].rank);
			CHECK_EQ(a->sent[i].nchunks, b->sent[i].nchunks);
			continue;
		}
		CHECK_EQ(a->runs[i].first, b->runs[i].first);
		CHECK_EQ(a->runs[i].count, b->runs[i].count);
	}
}

/* Decodes a copy of exactly `nbytes` on the heap, where ASan sees every overrun. */
static inline int decode(struct mmc_message *message, uint32_t kind,
			 const uint8_t *bytes, size_t nbytes)
{
	uint8_t *copy = malloc(nbytes + (nbytes == 0));
	int rc;

	memcpy(copy, bytes, nbytes);
	rc = mmc_message_decode(message, kind, copy, nbytes);
	free(copy);
	return rc;
}

static inline void check_refused(uint32_t kind, const uint8_t *bytes,
				 size_t nbytes, int error)
{
	struct mmc_message message;
	struct mmc_message untouched;

	memset(&message, 0xa5, sizeof(message));
	memset(&untouched, 0xa5, sizeof(untouched));
	CHECK_EQ(decode(&message, kind, bytes, nbytes), error);
	CHECK_BYTES(&message, &untouched, sizeof(message));
}

#endif
