/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/wire/message.h"
#include "support/prng.h"

#define BYTES_MAX (MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES)

static uint32_t items_max(uint32_t kind)
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

static uint32_t items_min(uint32_t kind)
{
	return kind == MMC_MESSAGE_ADVERT ? 1 : 0;
}

static size_t item_bytes(uint32_t kind)
{
	static const size_t bytes[MMC_MESSAGE_COUNT] = {
		[MMC_MESSAGE_NAK] = 8,	      [MMC_MESSAGE_NCF] = 8,
		[MMC_MESSAGE_DIRECT_NAK] = 8, [MMC_MESSAGE_ADVERT] = 36,
		[MMC_MESSAGE_SENT] = 8,
	};

	return bytes[kind];
}

/* Those have a test of their own. */
static bool is_report(uint32_t kind)
{
	return kind == MMC_MESSAGE_REPORT || kind == MMC_MESSAGE_WATERMARK;
}

static bool has_runs(uint32_t kind)
{
	return kind == MMC_MESSAGE_NAK || kind == MMC_MESSAGE_NCF ||
	       kind == MMC_MESSAGE_DIRECT_NAK;
}

static struct mmc_run random_run(struct mmc_prng *prng)
{
	struct mmc_run run = {
		.first = (uint32_t)mmc_prng_below(prng, MMC_CHUNKS_MAX),
	};

	run.count =
		1 + (uint32_t)mmc_prng_below(prng, MMC_CHUNKS_MAX - run.first);
	return run;
}

static struct mmc_advert random_advert(struct mmc_prng *prng)
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

static struct mmc_message random_message(struct mmc_prng *prng, uint32_t kind,
					 uint32_t nitems)
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
				.lag_epochs = (uint32_t)mmc_prng_next(prng),
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

static void check_equal_records(const struct mmc_record *a,
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
	CHECK_EQ(a->terms.deaf, b->terms.deaf);
}

static void check_equal_adverts(const struct mmc_advert *a,
				const struct mmc_advert *b)
{
	CHECK_EQ(a->generation, b->generation);
	CHECK_EQ(a->map_address, b->map_address);
	CHECK_EQ(a->data_address, b->data_address);
	CHECK_EQ(a->map_key, b->map_key);
	CHECK_EQ(a->data_key, b->data_key);
	CHECK_EQ(a->has_data, b->has_data);
}

static void check_equal_messages(const struct mmc_message *a,
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

/* Decodes a copy of exactly `nbytes` from the heap, where ASan sees the end. */
static int decode(struct mmc_message *message, uint32_t kind,
		  const uint8_t *bytes, size_t nbytes)
{
	uint8_t *copy = malloc(nbytes + (nbytes == 0));
	int rc;

	memcpy(copy, bytes, nbytes);
	rc = mmc_message_decode(message, kind, copy, nbytes);
	free(copy);
	return rc;
}

static void check_refused(uint32_t kind, const uint8_t *bytes, size_t nbytes,
			  int error)
{
	struct mmc_message message;
	struct mmc_message untouched;

	memset(&message, 0xa5, sizeof(message));
	memset(&untouched, 0xa5, sizeof(untouched));
	CHECK_EQ(decode(&message, kind, bytes, nbytes), error);
	CHECK_BYTES(&message, &untouched, sizeof(message));
}

static void round_trips(void)
{
	struct mmc_prng prng = { .state = 9 };
	uint8_t bytes[BYTES_MAX];

	for (uint32_t kind = 0; kind < MMC_MESSAGE_COUNT; kind++)
		for (uint32_t n = items_min(kind);
		     n <= items_max(kind) && !is_report(kind); n++) {
			struct mmc_message message =
				random_message(&prng, kind, n);
			size_t nbytes = mmc_message_bytes(&message);
			struct mmc_message read;

			CHECK(nbytes <= sizeof(bytes));
			CHECK_EQ(nbytes,
				 MMC_MESSAGE_BYTES + n * item_bytes(kind));
			mmc_message_encode(bytes, &message);
			CHECK_EQ(decode(&read, kind, bytes, nbytes), 0);
			check_equal_messages(&read, &message);
		}
}

/* Each field's bytes, at the offsets that the documentation gives. */
static void golden_bytes(void)
{
	static const uint8_t fixed[] = {
		0x01, 0x02, 0x03, 0x04, /* stamp */
		0x05, 0x06, 0x07, 0x08, /* echo */
		0x09, 0x0a, 0x0b, 0x06, /* flags, rounds, failure */
		0x0d, 0x0e, 0x0f, 0x10, /* culprit */
		0x11, 0x12, 0x13, 0x14, /* sent chunks */
		0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, /* least */
		0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, /* greatest */
		0x25, 0x26, 0x27, 0x28,				/* window */
		0x29, 0x2a, 0x2b, 0x2c,				/* round trip */
		0x2d, 0x2e, 0x2f, 0x30,				/* lag */
		0x00, 0x00, 0x00, 0x02,				/* items */
		0x31, 0x32, 0x33, 0x34,				/* source */
		0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x07, /* deaf */
		0x35, 0x36, 0x37, 0x38,				/* late rank */
		0x39, 0x3a, 0x3b, 0x3c,				/* late age */
	};
	static const uint8_t runs[] = {
		0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x05,
		0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
	};
	struct mmc_message message = {
		.kind = MMC_MESSAGE_NAK,
		.stamp_us = 0x01020304,
		.echo_us = 0x05060708,
		.record = {
			.flags = MMC_RECORD_ENTERED | MMC_RECORD_FAILED,
			.entry_rounds = 10,
			.release_rounds = 11,
			.failure = MMC_ESHORT,
			.culprit = 0x0d0e0f10,
			.sent_chunks = 0x11121314,
			.terms = {
				.signature_min = UINT64_C(0x15161718191a1b1c),
				.signature_max = UINT64_C(0x1d1e1f2021222324),
				.window_bytes = 0x25262728,
				.srtt_us = 0x292a2b2c,
				.lag_epochs = 0x2d2e2f30,
				.source_bytes = 0x31323334,
				.deaf = mmc_terms_deaf(5, 7),
			},
		},
		.late_rank = 0x35363738,
		.late_age_ms = 0x393a3b3c,
		.nitems = 2,
		.runs = { { 0x01020304, 5 }, { 0x06070809, 0x0a0b0c0d } },
	};
	uint8_t bytes[BYTES_MAX];

	CHECK_EQ(sizeof(fixed), MMC_MESSAGE_BYTES);
	CHECK_EQ(mmc_message_bytes(&message), sizeof(fixed) + sizeof(runs));
	mmc_message_encode(bytes, &message);
	CHECK_BYTES(bytes, fixed, sizeof(fixed));
	CHECK_BYTES(bytes + sizeof(fixed), runs, sizeof(runs));
}

static void golden_advert(void)
{
	static const uint8_t advert[] = {
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* generation */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* map */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* data */
		0x31, 0x32, 0x33, 0x34,				/* map's key */
		0x41, 0x42, 0x43, 0x44,				/* data's key */
		0x00, 0x00, 0x00, 0x01,				/* has data */
	};
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_ADVERT,
		.nitems = 1,
		.advert = {
			.generation = UINT64_C(0x0102030405060708),
			.map_address = UINT64_C(0x1112131415161718),
			.data_address = UINT64_C(0x2122232425262728),
			.map_key = 0x31323334,
			.data_key = 0x41424344,
			.has_data = true,
		},
	};
	uint8_t bytes[BYTES_MAX];
	struct mmc_message read;

	CHECK_EQ(mmc_message_bytes(&message),
		 MMC_MESSAGE_BYTES + sizeof(advert));
	mmc_message_encode(bytes, &message);
	CHECK_BYTES(bytes + MMC_MESSAGE_BYTES, advert, sizeof(advert));
	bytes[MMC_MESSAGE_BYTES + 35] = 2;
	check_refused(MMC_MESSAGE_ADVERT, bytes,
		      MMC_MESSAGE_BYTES + sizeof(advert), -MMC_EINVAL);
	bytes[MMC_MESSAGE_BYTES + 35] = 0;
	CHECK_EQ(decode(&read, MMC_MESSAGE_ADVERT, bytes,
			MMC_MESSAGE_BYTES + sizeof(advert)),
		 0);
	CHECK(!read.advert.has_data);
	mmc_put_u32(bytes + 48, 0);
	check_refused(MMC_MESSAGE_ADVERT, bytes, MMC_MESSAGE_BYTES,
		      -MMC_EINVAL);
}

/* Kinds are numbers on the wire. */
static void kinds(void)
{
	uint8_t bytes[MMC_MESSAGE_BYTES] = { 0 };

	CHECK_EQ(MMC_MESSAGE_RECORD, 0);
	CHECK_EQ(MMC_MESSAGE_NAK, 1);
	CHECK_EQ(MMC_MESSAGE_NCF, 2);
	CHECK_EQ(MMC_MESSAGE_REPORT, 3);
	CHECK_EQ(MMC_MESSAGE_WATERMARK, 4);
	CHECK_EQ(MMC_MESSAGE_DIRECT_NAK, 5);
	CHECK_EQ(MMC_MESSAGE_ADVERT, 6);
	CHECK_EQ(MMC_MESSAGE_SENT, 7);
	check_refused(MMC_MESSAGE_COUNT, bytes, sizeof(bytes), -MMC_EINVAL);
	check_refused(1 << 29, bytes, sizeof(bytes), -MMC_EINVAL);
	check_refused(UINT32_MAX, bytes, sizeof(bytes), -MMC_EINVAL);
}

static void truncations(void)
{
	struct mmc_prng prng = { .state = 10 };
	uint8_t bytes[BYTES_MAX + 8] = { 0 };

	for (uint32_t kind = 0; kind < MMC_MESSAGE_COUNT; kind++) {
		uint32_t max = items_max(kind);

		for (uint32_t n = items_min(kind); n <= max && !is_report(kind);
		     n += n == 0 ? 1 : max - 1) {
			struct mmc_message message =
				random_message(&prng, kind, n);
			size_t whole = mmc_message_bytes(&message);

			mmc_message_encode(bytes, &message);
			for (size_t nbytes = 0; nbytes < whole + 8; nbytes++)
				if (nbytes != whole)
					check_refused(kind, bytes, nbytes,
						      -MMC_ESHORT);
			if (max <= 1)
				break;
		}
	}
}

/* What is written over four bytes of a message that is right otherwise. */
struct spoiled {
	const char *what;
	size_t offset;
	uint32_t value;
};

static void fields_out_of_range(void)
{
	static const struct spoiled rows[] = {
		{ "unknown flag", 8, 0x20000000 },
		{ "unknown flag", 8, 0x80000000 },
		{ "entry rounds", 8, 0x00150000 },
		{ "entry rounds", 8, 0x00ff0000 },
		{ "release rounds", 8, 0x00001500 },
		{ "release rounds", 8, 0x0000ff00 },
		{ "a failure without its flag", 8, 0x00000001 },
		{ "a flag without its failure", 8, 0x08000000 },
		{ "entered, and never will", 8, 0x11000000 },
		{ "done, and will never enter", 8, 0x12000000 },
		{ "failed, and will never enter", 8, 0x1800000f },
		{ "unknown failure", 8, 0x08000013 },
		{ "unknown failure", 8, 0x080000ff },
		{ "too many items", 48, MMC_RUNS_MAX + 1 },
		{ "too many items", 48, 0x20000001 },
		{ "too many items", 48, UINT32_MAX },
		{ "a run of a chunk that cannot be", 72, MMC_CHUNKS_MAX },
		{ "a run of a chunk that cannot be", 72, UINT32_MAX },
		{ "an empty run", 76, 0 },
		{ "a run that ends too late", 76, MMC_CHUNKS_MAX - 4 },
		{ "a run that wraps", 76, UINT32_MAX },
		{ "a run that wraps", 76, UINT32_MAX - 4 },
	};
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_NAK,
		.nitems = 1,
		.runs = { { .first = 5, .count = 1 } },
	};
	uint8_t bytes[MMC_MESSAGE_BYTES + 8];
	struct mmc_message read;

	mmc_message_encode(bytes, &message);
	CHECK_EQ(decode(&read, MMC_MESSAGE_NAK, bytes, sizeof(bytes)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		mmc_message_encode(bytes, &message);
		mmc_put_u32(bytes + rows[i].offset, rows[i].value);
		if (decode(&read, MMC_MESSAGE_NAK, bytes, sizeof(bytes)) == 0)
			check_failed(rows[i].what, __FILE__, __LINE__);
		check_refused(MMC_MESSAGE_NAK, bytes, sizeof(bytes),
			      -MMC_EINVAL);
	}
}

/* The greatest values that are still right. */
static void fields_at_their_limits(void)
{
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_NCF,
		.record = {
			.flags = 15,
			.entry_rounds = MMC_ROUNDS_MAX,
			.release_rounds = MMC_ROUNDS_MAX,
			.failure = MMC_ERROR_MAX,
			.culprit = MMC_PEER_ALL,
		},
		.nitems = 2,
		.runs = { { .first = 0, .count = MMC_CHUNKS_MAX },
			  { .first = MMC_CHUNKS_MAX - 1, .count = 1 } },
	};
	uint8_t bytes[MMC_MESSAGE_BYTES + 16];
	struct mmc_message read;

	mmc_message_encode(bytes, &message);
	CHECK_EQ(decode(&read, MMC_MESSAGE_NCF, bytes, sizeof(bytes)), 0);
	check_equal_messages(&read, &message);
}

/* Whatever is let through encodes to the very same bytes. */
static void canonical(void)
{
	struct mmc_prng prng = { .state = 11 };
	uint8_t bytes[BYTES_MAX];
	uint8_t again[BYTES_MAX];

	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t kind =
			(uint32_t)mmc_prng_below(&prng, MMC_MESSAGE_COUNT);
		uint32_t n = items_max(kind) < 3 ? items_max(kind) : i % 3;
		struct mmc_message message = random_message(&prng, kind, n);
		size_t nbytes = mmc_message_bytes(&message);
		struct mmc_message read;

		mmc_message_encode(bytes, &message);
		bytes[mmc_prng_below(&prng, nbytes)] ^=
			(uint8_t)(1 << mmc_prng_below(&prng, 8));
		if (decode(&read, kind, bytes, nbytes) != 0)
			continue;
		mmc_message_encode(again, &read);
		CHECK_BYTES(again, bytes, nbytes);
	}
}

/* What the headers promise of sizes. */
static void sizes(void)
{
	CHECK_EQ(MMC_MESSAGE_BYTES_MAX, 16 + 4 * (3 + MMC_CHAINS_MAX));
	CHECK(MMC_HEADER_BYTES + MMC_MESSAGE_BYTES + 8 * MMC_RUNS_MAX <= 512);
	CHECK(MMC_MESSAGE_BYTES_MAX + MMC_CRC_BYTES <= 1472);
}

CHECK_MAIN(CHECK_TEST(round_trips), CHECK_TEST(golden_bytes),
	   CHECK_TEST(golden_advert), CHECK_TEST(kinds),
	   CHECK_TEST(truncations), CHECK_TEST(fields_out_of_range),
	   CHECK_TEST(fields_at_their_limits), CHECK_TEST(canonical),
	   CHECK_TEST(sizes))
