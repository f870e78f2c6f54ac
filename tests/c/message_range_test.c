/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with wrong values are refused; values at the limits are accepted. */
#include "messages.h"

/* A message that is too short or too long for its items is refused. */
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

/* A value that is written over four bytes of an otherwise correct message. */
struct spoiled {
	const char *what;
	size_t offset;
	uint32_t value;
};

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

/* A field with a value out of its range makes the message invalid. */
static void fields_out_of_range(void)
{
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

/* The greatest values that are allowed are accepted. */
static void fields_at_their_limits(void)
{
	const struct mmc_message message = {
		.kind = MMC_MESSAGE_NCF,
		.record = {
			.flags = 15,
			.entry_rounds = MMC_ROUNDS_MAX,
			.release_rounds = MMC_ROUNDS_MAX,
			.failure = MMC_ERROR_MAX,
			.culprit = MMC_PEER_NONE,
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

/* A message that is accepted encodes to the very same bytes. */
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

/* A part counts in bytes, within what a message holds, behind its place. */
static void lengths(void)
{
	enum { HEAD_BYTES = MMC_MESSAGE_BYTES + MMC_PART_HEAD_BYTES };
	static uint8_t bytes[HEAD_BYTES + MMC_PART_BYTES + 1];
	struct mmc_message message;

	CHECK_EQ(MMC_PART_BYTES, 960);
	for (uint32_t n = 0; n <= MMC_PART_BYTES + 1; n++) {
		int right = n <= MMC_PART_BYTES ? 0 : -MMC_EINVAL;

		mmc_message_set_part(bytes, 77 * n, n);
		CHECK_EQ(mmc_message_decode(&message, MMC_MESSAGE_BLOCKS, bytes,
					    HEAD_BYTES + n),
			 right);
		if (right != 0)
			continue;
		CHECK_EQ(message.nitems, n);
		CHECK_EQ(message.part.first, 77 * n);
		CHECK(message.part.bytes == bytes + HEAD_BYTES);
		CHECK_EQ(mmc_message_bytes(&message), HEAD_BYTES + n);
		CHECK_EQ(mmc_message_decode(&message, MMC_MESSAGE_BLOCKS, bytes,
					    HEAD_BYTES + n + 1),
			 -MMC_ESHORT);
	}
}

CHECK_MAIN(CHECK_TEST(lengths), CHECK_TEST(truncations),
	   CHECK_TEST(fields_out_of_range), CHECK_TEST(fields_at_their_limits),
	   CHECK_TEST(canonical))
