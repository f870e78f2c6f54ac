/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports and watermarks on the wire. */
#include "core/wire/report.h"

#include "core/wire/varint.h"
#include "messages.h"

/* Draws a report whose positions lie within `spread` of each other. */
static struct mmc_message random_report(struct mmc_prng *prng,
					uint32_t npositions, uint32_t spread)
{
	uint32_t first =
		(uint32_t)mmc_prng_below(prng, MMC_VARINT_MAX + 1 - spread);
	struct mmc_message message = {
		.kind = mmc_prng_below(prng, 2) != 0 ? MMC_MESSAGE_REPORT
						     : MMC_MESSAGE_WATERMARK,
		.record = {
			.flags = MMC_RECORD_ENTERED | MMC_RECORD_DONE,
			.sent_chunks = (uint32_t)mmc_prng_below(
				prng, MMC_VARINT_MAX + 1),
			.terms = { .window_bytes = 7, .deaf = 9 },
		},
		.late_age_ms = 5,
		.nitems = npositions,
	};

	for (uint32_t i = 0; i < npositions; i++)
		message.positions[i] =
			first + (uint32_t)mmc_prng_below(prng, spread + 1);
	return message;
}

/* Checks positions and sent chunks, and that all other fields are neutral. */
static void check_said(const struct mmc_message *read,
		       const struct mmc_message *message)
{
	CHECK_EQ(read->kind, message->kind);
	CHECK_EQ(read->stamp_us, 0);
	CHECK_EQ(read->echo_us, 0);
	CHECK_EQ(read->record.flags, 0);
	CHECK_EQ(read->record.entry_rounds, 0);
	CHECK_EQ(read->record.release_rounds, 0);
	CHECK_EQ(read->record.failure, MMC_OK);
	CHECK_EQ(read->record.culprit, MMC_PEER_NONE);
	CHECK_EQ(read->record.sent_chunks, message->record.sent_chunks);
	CHECK_EQ(read->record.terms.deaf, 0);
	CHECK_EQ(read->late_age_ms, 0);
	CHECK_EQ(read->nitems, message->nitems);
	for (uint32_t i = 0; i < message->nitems; i++)
		CHECK_EQ(read->positions[i], message->positions[i]);
}

/* Reports with any positions survive encoding and decoding. */
static void round_trips(void)
{
	static const uint32_t spreads[] = {
		0, 1, 63, 64, 16383, 16384, 1 << 20, MMC_VARINT_MAX
	};
	struct mmc_prng prng = { .state = 21 };
	uint8_t bytes[BYTES_MAX];

	for (uint32_t n = 0; n <= MMC_CHAINS_MAX; n++)
		for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]);
		     i++) {
			struct mmc_message message =
				random_report(&prng, n, spreads[i]);
			size_t nbytes = mmc_message_bytes(&message);
			struct mmc_message read;

			CHECK(nbytes <= sizeof(bytes));
			mmc_message_encode(bytes, &message);
			CHECK_EQ(decode(&read, message.kind, bytes, nbytes), 0);
			check_said(&read, &message);
		}
}

/*
 * A watermark has the bytes that the documentation gives. The numbers are from
 * RFC 9000, appendix A.1.
 */
static void golden_bytes(void)
{
	static const uint8_t golden[] = {
		0x03,			/* positions */
		0x9d, 0x7f, 0x3e, 0x7d, /* sent: 494,878,333 */
		0x7b, 0xbd,		/* the least: 15,293 */
		0x25, 0x00, 0x40, 0x40, /* beyond it: 37, 0 and 64 */
	};
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_WATERMARK,
		.record = { .sent_chunks = 494878333 },
		.nitems = 3,
		.positions = { 15293 + 37, 15293, 15293 + 64 },
	};
	uint8_t bytes[BYTES_MAX];

	CHECK_EQ(mmc_message_bytes(&message), sizeof(golden));
	mmc_message_encode(bytes, &message);
	CHECK_BYTES(bytes, golden, sizeof(golden));
}

/* A report of 64 chains that keep abreast takes about a byte for each. */
static void abreast_is_short(void)
{
	struct mmc_prng prng = { .state = 22 };
	struct mmc_message message = random_report(&prng, 64, 63);

	CHECK(mmc_message_bytes(&message) <= 2 + 4 + 4 + 64);
}

/*
 * A number too large for the wire is sent as a smaller one. That is still true,
 * since these numbers only grow.
 */
static void tells_no_more_than_it_can(void)
{
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_REPORT,
		.record = { .sent_chunks = UINT32_MAX },
		.nitems = 2,
		.positions = { MMC_CHUNKS_MAX, 5 },
	};
	uint8_t bytes[BYTES_MAX];
	struct mmc_message read;

	mmc_message_encode(bytes, &message);
	CHECK_EQ(decode(&read, message.kind, bytes,
			mmc_message_bytes(&message)),
		 0);
	CHECK_EQ(read.record.sent_chunks, MMC_VARINT_MAX);
	CHECK_EQ(read.positions[0], MMC_VARINT_MAX);
	CHECK_EQ(read.positions[1], 5);
}

/* A report that is too short or too long is refused. */
static void wrong_lengths(void)
{
	struct mmc_prng prng = { .state = 23 };
	uint8_t bytes[BYTES_MAX + 8] = { 0 };

	for (uint32_t n = 0; n <= MMC_CHAINS_MAX; n += 1 + n / 2) {
		struct mmc_message message = random_report(&prng, n, 20000);
		size_t whole = mmc_message_bytes(&message);

		mmc_message_encode(bytes, &message);
		for (size_t nbytes = 0; nbytes < whole + 8; nbytes++)
			if (nbytes != whole)
				check_refused(MMC_MESSAGE_REPORT, bytes, nbytes,
					      -MMC_ESHORT);
	}
}

/* A number that is out of range, or longer than it needs to be, is refused. */
static void numbers_out_of_range(void)
{
	static const struct {
		const char *what;
		uint8_t bytes[9];
		size_t nbytes;
	} rows[] = {
		{ "too many positions", { 0x41, 0x01, 0, 0 }, 4 },
		{ "a count of 8 bytes", { 0xc0, 0, 0, 0, 0, 0, 0, 1 }, 8 },
		{ "a sent of 8 bytes", { 0, 0xc0, 0, 0, 0, 0, 0, 0, 1 }, 9 },
		{ "a count that could be shorter", { 0x40, 0x00, 0, 0 }, 4 },
		{ "a sent that could be shorter", { 0, 0x40, 0x3f, 0 }, 4 },
		{ "a position that could be shorter",
		  { 2, 0, 0, 0, 0x80, 0, 0x3f, 0xff },
		  8 },
		{ "a least that none has", { 1, 0, 5, 1 }, 4 },
		{ "a least without a position", { 0, 0, 5 }, 3 },
		{ "a position beyond all chunks",
		  { 1, 0, 0xbf, 0xff, 0xff, 0xff, 1 },
		  7 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmc_message read;

		if (decode(&read, MMC_MESSAGE_REPORT, rows[i].bytes,
			   rows[i].nbytes) == 0)
			check_failed(rows[i].what, __FILE__, __LINE__);
		check_refused(MMC_MESSAGE_REPORT, rows[i].bytes, rows[i].nbytes,
			      -MMC_EINVAL);
	}
}

/* A report that is accepted encodes to the very same bytes. */
static void canonical(void)
{
	struct mmc_prng prng = { .state = 24 };
	uint8_t bytes[BYTES_MAX];
	uint8_t again[BYTES_MAX];
	uint32_t nread = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		struct mmc_message message =
			random_report(&prng, i % 4, 1U << i % 20);
		size_t nbytes = mmc_message_bytes(&message);
		struct mmc_message read;

		mmc_message_encode(bytes, &message);
		bytes[mmc_prng_below(&prng, nbytes)] ^=
			(uint8_t)(1 << mmc_prng_below(&prng, 8));
		if (decode(&read, MMC_MESSAGE_REPORT, bytes, nbytes) != 0)
			continue;
		nread++;
		CHECK_EQ(mmc_message_bytes(&read), nbytes);
		mmc_message_encode(again, &read);
		CHECK_BYTES(again, bytes, nbytes);
	}
	CHECK(nread > 1000);
}

CHECK_MAIN(CHECK_TEST(round_trips), CHECK_TEST(golden_bytes),
	   CHECK_TEST(abreast_is_short), CHECK_TEST(tells_no_more_than_it_can),
	   CHECK_TEST(wrong_lengths), CHECK_TEST(numbers_out_of_range),
	   CHECK_TEST(canonical))
