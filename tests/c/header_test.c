/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/wire/header.h"
#include "support/prng.h"

static const enum mmc_checksum checksums[] = {
	MMC_CHECKSUM_OFF,
	MMC_CHECKSUM_HEADER,
	MMC_CHECKSUM_FULL,
};

/* Draws a header such as a sender writes. */
static struct mmc_header random_header(struct mmc_prng *prng)
{
	static const uint32_t flags[] = { 0, MMC_INDEX_REPAIR,
					  MMC_INDEX_CONTROL, MMC_INDEX_PARITY };

	return (struct mmc_header){
		.channel = mmc_prng_next(prng) & MMC_CHANNEL_MASK,
		.epoch = (uint32_t)mmc_prng_next(prng),
		.index = ((uint32_t)mmc_prng_next(prng) & MMC_INDEX_MASK) |
			 flags[mmc_prng_below(prng, 4)],
	};
}

static void check_refused(const uint8_t *bytes, size_t nbytes,
			  enum mmc_checksum checksum, int error)
{
	struct mmc_header header = { .epoch = 77 };

	CHECK_EQ(mmc_header_decode(&header, bytes, nbytes, checksum), error);
	CHECK_EQ(header.epoch, 77);
}

/* A header decodes to what was encoded. */
static void round_trips(void)
{
	struct mmc_prng prng = { .state = 4 };
	uint8_t bytes[MMC_HEADER_BYTES];

	for (int i = 0; i < 100000; i++) {
		enum mmc_checksum checksum = checksums[i % 3];
		struct mmc_header header = random_header(&prng);
		size_t nbytes = MMC_HEADER_BYTES + MMC_CRC_BYTES +
				mmc_prng_below(&prng, 65536);
		struct mmc_header_words words;
		struct mmc_header read;

		mmc_header_encode(bytes, &header, nbytes, checksum);
		CHECK_EQ(mmc_header_decode(&read, bytes, nbytes, checksum), 0);
		CHECK_EQ(read.channel, header.channel);
		CHECK_EQ(read.epoch, header.epoch);
		CHECK_EQ(read.index, header.index);
		read = mmc_header_peek(bytes);
		CHECK_EQ(read.channel & MMC_CHANNEL_MASK, header.channel);
		CHECK_EQ(read.epoch, header.epoch);
		CHECK_EQ(read.index, header.index);
		words = mmc_header_words_by_byte(bytes);
		CHECK_EQ(words.channel, read.channel);
		CHECK_EQ(words.rest,
			 (uint64_t)header.epoch << 32 | header.index);
	}
}

/*
 * A template yields the headers that encoding would, and matches these alone: not those
 * of other indices, and none of which a bit was flipped.
 */
static void templates(void)
{
	struct mmc_prng prng = { .state = 9 };

	for (int i = 0; i < 100000; i++) {
		enum mmc_checksum checksum = checksums[i % 3];
		struct mmc_header header = random_header(&prng);
		size_t nbytes = MMC_HEADER_BYTES + MMC_CRC_BYTES +
				mmc_prng_below(&prng, 65536);
		struct mmc_header_template template =
			mmc_header_template(&header, nbytes, checksum);
		uint32_t flipped =
			(uint32_t)mmc_prng_below(&prng, 8 * MMC_HEADER_BYTES);
		uint8_t bytes[MMC_HEADER_BYTES];
		uint8_t written[MMC_HEADER_BYTES];

		header.index = random_header(&prng).index;
		mmc_header_encode(bytes, &header, nbytes, checksum);
		mmc_header_write(&template, written, header.index);
		CHECK_BYTES(written, bytes, sizeof(bytes));
		CHECK(mmc_header_matches(&template, bytes, header.index));
		CHECK(!mmc_header_matches(&template, bytes, header.index ^ 1));
		bytes[flipped / 8] ^= (uint8_t)(1 << flipped % 8);
		CHECK(!mmc_header_matches(&template, bytes, header.index));
	}
}

/* The expected bytes come from the documentation, not from the code. */
static void golden_bytes(void)
{
	static const uint8_t plain[] = {
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x00, 0x00,
		0xde, 0xad, 0xbe, 0xef, 0x40, 0x00, 0x12, 0x34,
	};
	/* 0123^4567^89ab ^ dead^beef ^ 4000^1234 ^ 0020 */
	static const uint8_t sum[] = { 0xff, 0xb9 };
	const struct mmc_header header = {
		.channel = UINT64_C(0x0123456789abffff), /* low 16: ignored */
		.epoch = 0xdeadbeef,
		.index = MMC_INDEX_REPAIR | 0x1234,
	};
	uint8_t bytes[MMC_HEADER_BYTES];

	mmc_header_encode(bytes, &header, 32, MMC_CHECKSUM_OFF);
	CHECK_BYTES(bytes, plain, sizeof(plain));
	mmc_header_encode(bytes, &header, 32, MMC_CHECKSUM_HEADER);
	CHECK_BYTES(bytes, plain, 6);
	CHECK_BYTES(bytes + 6, sum, sizeof(sum));
	CHECK_BYTES(bytes + 8, plain + 8, 8);
}

static void flip(uint8_t *bytes, unsigned bit)
{
	bytes[bit / 8] ^= (uint8_t)(0x80 >> (bit % 8));
}

/* A change of any single bit is detected. */
static void single_bits(void)
{
	struct mmc_prng prng = { .state = 5 };
	uint8_t bytes[MMC_HEADER_BYTES];

	for (int i = 0; i < 1000; i++) {
		enum mmc_checksum checksum = checksums[1 + i % 2];
		struct mmc_header header = random_header(&prng);
		size_t nbytes = 32 + mmc_prng_below(&prng, 9000);

		mmc_header_encode(bytes, &header, nbytes, checksum);
		for (unsigned bit = 0; bit < 8 * MMC_HEADER_BYTES; bit++) {
			flip(bytes, bit);
			check_refused(bytes, nbytes, checksum, -MMC_ECORRUPT);
			flip(bytes, bit);
		}
	}
}

/* Any change within 16 adjacent bits is detected. */
static void bursts(void)
{
	struct mmc_prng prng = { .state = 6 };
	uint8_t bytes[MMC_HEADER_BYTES];
	uint8_t bad[MMC_HEADER_BYTES];

	for (int i = 0; i < 300; i++) {
		struct mmc_header header = random_header(&prng);

		mmc_header_encode(bytes, &header, 100, MMC_CHECKSUM_HEADER);
		for (unsigned at = 0; at + 16 <= 8 * MMC_HEADER_BYTES; at++) {
			uint64_t pattern = 1 + mmc_prng_below(&prng, 65535);

			memcpy(bad, bytes, sizeof(bad));
			for (unsigned bit = 0; bit < 16; bit++)
				if ((pattern >> bit) & 1)
					flip(bad, at + bit);
			check_refused(bad, 100, MMC_CHECKSUM_HEADER,
				      -MMC_ECORRUPT);
		}
	}
}

/* A datagram that was cut or padded on its way is refused. */
static void lengths(void)
{
	struct mmc_prng prng = { .state = 7 };
	uint8_t bytes[MMC_HEADER_BYTES];
	struct mmc_header header = random_header(&prng);

	mmc_header_encode(bytes, &header, 1472, MMC_CHECKSUM_HEADER);
	for (size_t nbytes = MMC_HEADER_BYTES; nbytes < 65536; nbytes++)
		if (nbytes != 1472)
			check_refused(bytes, nbytes, MMC_CHECKSUM_HEADER,
				      -MMC_ECORRUPT);
}

/* A datagram that is too short for a header is refused without being read. */
static void short_datagrams(void)
{
	for (unsigned c = 0; c < 3; c++) {
		enum mmc_checksum checksum = checksums[c];
		size_t least_bytes = MMC_HEADER_BYTES;

		if (checksum == MMC_CHECKSUM_FULL)
			least_bytes += MMC_CRC_BYTES;
		for (size_t nbytes = 0; nbytes < least_bytes; nbytes++) {
			uint8_t *bytes = calloc(1, nbytes + (nbytes == 0));

			check_refused(bytes, nbytes, checksum, -MMC_ESHORT);
			free(bytes);
		}
	}
}

/* Without a checksum, a header is refused unless its checksum field is zero. */
static void checksum_off(void)
{
	struct mmc_header header = { .channel = UINT64_C(1) << 16 };
	uint8_t bytes[MMC_HEADER_BYTES];

	mmc_header_encode(bytes, &header, 16, MMC_CHECKSUM_OFF);
	for (unsigned bit = 48; bit < 64; bit++) {
		flip(bytes, bit);
		check_refused(bytes, 16, MMC_CHECKSUM_OFF, -MMC_ECORRUPT);
		flip(bytes, bit);
	}
	CHECK_EQ(mmc_header_decode(&header, bytes, 16, MMC_CHECKSUM_OFF), 0);
}

/* The index of a header tells what kind of traffic the datagram is. */
static void traffic(void)
{
	CHECK_EQ(mmc_header_traffic(0), MMC_TRAFFIC_MULTICAST);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_MASK), MMC_TRAFFIC_MULTICAST);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_REPAIR), MMC_TRAFFIC_REPAIR);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_REPAIR | 5), MMC_TRAFFIC_REPAIR);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_CONTROL), MMC_TRAFFIC_CONTROL);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_CONTROL | 5),
		 MMC_TRAFFIC_CONTROL);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_PARITY | 5),
		 MMC_TRAFFIC_MULTICAST);
	CHECK_EQ(mmc_header_traffic(MMC_INDEX_PARITY | MMC_INDEX_ON_REQUEST),
		 MMC_TRAFFIC_REPAIR);
	CHECK(mmc_header_is_parity(MMC_INDEX_PARITY | 5));
	CHECK(!mmc_header_is_parity(MMC_INDEX_CONTROL));
	CHECK(!mmc_header_is_parity(MMC_INDEX_REPAIR));
	CHECK(mmc_header_is_control(MMC_INDEX_CONTROL | 5));
	CHECK(!mmc_header_is_control(MMC_INDEX_PARITY));
	CHECK_EQ(MMC_INDEX_MASK + 1, MMC_CHUNKS_MAX);
}

/* Numbers on the wire are big-endian. */
static void big_endian(void)
{
	static const uint8_t bytes[] = { 0xfe, 0xdc, 0xba, 0x98,
					 0x76, 0x54, 0x32, 0x10 };
	uint8_t written[8];

	mmc_put_u32(written, 0xfedcba98);
	CHECK_BYTES(written, bytes, 4);
	mmc_put_u64(written, UINT64_C(0xfedcba9876543210));
	CHECK_BYTES(written, bytes, 8);
	CHECK_EQ(mmc_get_u32(bytes), 0xfedcba98);
	CHECK_EQ(mmc_get_u64(bytes), UINT64_C(0xfedcba9876543210));
}

CHECK_MAIN(CHECK_TEST(round_trips), CHECK_TEST(templates),
	   CHECK_TEST(golden_bytes), CHECK_TEST(single_bits),
	   CHECK_TEST(bursts), CHECK_TEST(lengths), CHECK_TEST(short_datagrams),
	   CHECK_TEST(checksum_off), CHECK_TEST(traffic),
	   CHECK_TEST(big_endian))
