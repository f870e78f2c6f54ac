/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages on the wire. */
#include "messages.h"

static size_t item_bytes(uint32_t kind)
{
	static const size_t bytes[MMC_MESSAGE_COUNT] = {
		[MMC_MESSAGE_NAK] = 8,	      [MMC_MESSAGE_NCF] = 8,
		[MMC_MESSAGE_DIRECT_NAK] = 8, [MMC_MESSAGE_ADVERT] = 36,
		[MMC_MESSAGE_SENT] = 8,
	};

	return bytes[kind];
}

/* Random messages of every kind survive encoding and decoding. */
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
			if (kind == MMC_MESSAGE_BLOCKS) {
				message.part.first =
					(uint32_t)mmc_prng_next(&prng);
				nbytes -= MMC_PART_HEAD_BYTES;
			}
			CHECK_EQ(nbytes,
				 MMC_MESSAGE_BYTES + n * item_bytes(kind));
			nbytes = mmc_message_bytes(&message);
			mmc_message_encode(bytes, &message);
			CHECK_EQ(decode(&read, kind, bytes, nbytes), 0);
			check_equal_messages(&read, &message);
			CHECK_EQ(mmc_message_first(&read),
				 mmc_message_first(&message));
		}
}

/* Most bytes of this message count up, so that each shows its offset. */
static const struct mmc_message counting = {
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
			.lag_epochs = 0x2e2f30,
			.parity = 0x2d,
			.source_bytes = 0x31323334,
			.deaf = UINT64_C(0x0000000600000007),
		},
	},
	.late_rank = 0x35363738,
	.late_age_ms = 0x393a3b3c,
	.nitems = 2,
	.runs = { { 0x01020304, 5 }, { 0x06070809, 0x0a0b0c0d } },
};

/* Each field's bytes lie at the offsets that the documentation gives. */
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
		0x2d, 0x2e, 0x2f, 0x30, /* parity, lag */
		0x00, 0x00, 0x00, 0x02, /* items */
		0x31, 0x32, 0x33, 0x34, /* source */
		0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x07, /* deaf */
		0x35, 0x36, 0x37, 0x38,				/* late rank */
		0x39, 0x3a, 0x3b, 0x3c,				/* late age */
	};
	static const uint8_t runs[] = {
		0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x05,
		0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
	};
	uint8_t bytes[BYTES_MAX];

	CHECK_EQ(counting.record.terms.deaf, mmc_terms_deaf(5, 7));
	CHECK_EQ(sizeof(fixed), MMC_MESSAGE_BYTES);
	CHECK_EQ(mmc_message_bytes(&counting), sizeof(fixed) + sizeof(runs));
	mmc_message_encode(bytes, &counting);
	CHECK_BYTES(bytes, fixed, sizeof(fixed));
	CHECK_BYTES(bytes + sizeof(fixed), runs, sizeof(runs));
}

/*
 * An advert has the documented bytes. A flag other than 0 or 1 is refused, and
 * so is an advert message without an advert.
 */
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

/* Kinds are fixed numbers, since they go over the wire. */
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

/* Messages keep to the sizes that the headers promise. */
static void sizes(void)
{
	CHECK_EQ(MMC_MESSAGE_BYTES_MAX, 16 + 4 * (3 + MMC_CHAINS_MAX));
	CHECK(MMC_HEADER_BYTES + MMC_MESSAGE_BYTES + 8 * MMC_RUNS_MAX <= 512);
	CHECK(MMC_MESSAGE_BYTES_MAX + MMC_CRC_BYTES <= 1472);
}

CHECK_MAIN(CHECK_TEST(round_trips), CHECK_TEST(golden_bytes),
	   CHECK_TEST(golden_advert), CHECK_TEST(kinds), CHECK_TEST(sizes))
