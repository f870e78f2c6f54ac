/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers of variable length, against the examples and the table of RFC 9000. */
#include "core/wire/varint.h"

#include "check.h"
#include "support/prng.h"

/* Decodes a copy of exactly `nbytes` on the heap, where ASan sees every overrun. */
static int take(const uint8_t *bytes, size_t nbytes, uint32_t *value,
		size_t *ntaken)
{
	uint8_t *copy = malloc(nbytes + (nbytes == 0));
	const uint8_t *at = copy;
	int rv;

	memcpy(copy, bytes, nbytes);
	rv = mmc_varint_take(&at, copy + nbytes, value);
	*ntaken = (size_t)(at - copy);
	free(copy);
	return rv;
}

static void check_round_trip(uint32_t value)
{
	uint8_t bytes[MMC_VARINT_BYTES_MAX + 1];
	size_t nbytes = mmc_varint_bytes(value);
	uint32_t taken = ~value;
	size_t ntaken;

	memset(bytes, 0xa5, sizeof(bytes));
	CHECK(mmc_varint_put(bytes, value) == bytes + nbytes);
	CHECK_EQ(bytes[nbytes], 0xa5);
	CHECK_EQ(take(bytes, nbytes, &taken, &ntaken), 0);
	CHECK_EQ(taken, value);
	CHECK_EQ(ntaken, nbytes);
	/* Bytes that follow a number are not taken. */
	CHECK_EQ(take(bytes, sizeof(bytes), &taken, &ntaken), 0);
	CHECK_EQ(taken, value);
	CHECK_EQ(ntaken, nbytes);
	for (size_t cut = 0; cut < nbytes; cut++)
		CHECK_EQ(take(bytes, cut, &taken, &ntaken), -MMC_ESHORT);
}

static void round_trips(void)
{
	struct mmc_prng prng = { .state = check_seed() };

	for (uint32_t value = 0; value < 20000; value++)
		check_round_trip(value);
	for (unsigned bit = 0; bit < 30; bit++)
		for (int32_t off = -2; off <= 2; off++)
			check_round_trip((uint32_t)((1 << bit) + off) &
					 MMC_VARINT_MAX);
	for (unsigned i = 0; i < 10000; i++)
		check_round_trip((uint32_t)mmc_prng_below(
			&prng, UINT64_C(1) + MMC_VARINT_MAX));
	check_round_trip(MMC_VARINT_MAX);
}

/* The examples of RFC 9000, appendix A.1, that have 1, 2 and 4 bytes. */
static void known_bytes(void)
{
	static const struct {
		uint32_t value;
		size_t nbytes;
		uint8_t bytes[4];
	} rows[] = {
		{ 37, 1, { 0x25 } },
		{ 15293, 2, { 0x7b, 0xbd } },
		{ 494878333, 4, { 0x9d, 0x7f, 0x3e, 0x7d } },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t bytes[4];
		uint32_t value;
		size_t ntaken;

		CHECK_EQ(mmc_varint_bytes(rows[i].value), rows[i].nbytes);
		mmc_varint_put(bytes, rows[i].value);
		CHECK_BYTES(bytes, rows[i].bytes, rows[i].nbytes);
		CHECK_EQ(take(rows[i].bytes, rows[i].nbytes, &value, &ntaken),
			 0);
		CHECK_EQ(value, rows[i].value);
	}
}

/* A number takes 1, 2 or 4 bytes, as few as hold it. */
static void lengths(void)
{
	CHECK_EQ(mmc_varint_bytes(63), 1);
	CHECK_EQ(mmc_varint_bytes(64), 2);
	CHECK_EQ(mmc_varint_bytes(16383), 2);
	CHECK_EQ(mmc_varint_bytes(16384), 4);
	CHECK_EQ(mmc_varint_bytes(MMC_VARINT_MAX), MMC_VARINT_BYTES_MAX);
}

/* Encodings that are longer than needed, or of 8 bytes, are refused. */
static void refuses(void)
{
	static const struct {
		uint8_t bytes[8];
		size_t nbytes;
	} rows[] = {
		{ { 0x40, 0x25 }, 2 },
		{ { 0x40, 0x3f }, 2 },
		{ { 0x80, 0x00, 0x00, 0x25 }, 4 },
		{ { 0x80, 0x00, 0x3f, 0xff }, 4 },
		{ { 0xc0, 0, 0, 0, 0, 0, 0, 0x25 }, 8 },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 8 },
		{ { 0xc0 }, 1 },
	};
	uint32_t value;
	size_t ntaken;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_EQ(take(rows[i].bytes, rows[i].nbytes, &value, &ntaken),
			 -MMC_EINVAL);
}

CHECK_MAIN(CHECK_TEST(round_trips), CHECK_TEST(known_bytes),
	   CHECK_TEST(lengths), CHECK_TEST(refuses))
