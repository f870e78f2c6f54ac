/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the CRC with published values, and with its definition bit by bit. */
#include "engine/crc32c.h"

#include "check.h"
#include "support/prng.h"

/* The CRC gives the examples of RFC 3720, appendix B.4, and the usual check value. */
static void published_values(void)
{
	uint8_t bytes[32];

	memset(bytes, 0, sizeof(bytes));
	CHECK_EQ(mmc_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	CHECK_EQ(mmc_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	CHECK_EQ(mmc_crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(31 - i);
	CHECK_EQ(mmc_crc32c(0, bytes, sizeof(bytes)), 0x113fdb5c);
	CHECK_EQ(mmc_crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_EQ(mmc_crc32c(0, bytes, 0), 0);
}

static uint32_t bit_by_bit(const uint8_t *bytes, size_t nbytes)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < nbytes; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* The CRC is right for any length at any alignment, in one part or in two. */
static void any_bytes_in_parts(void)
{
	struct mmc_prng prng = { .state = check_seed() };
	uint8_t memory[128];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)mmc_prng_next(&prng);
	for (size_t begin = 0; begin < 8; begin++)
		for (size_t nbytes = 0; nbytes <= 64; nbytes++) {
			const uint8_t *bytes = memory + begin;
			size_t part = mmc_prng_below(&prng, nbytes + 1);
			uint32_t crc = mmc_crc32c(0, bytes, part);

			crc = mmc_crc32c(crc, bytes + part, nbytes - part);
			CHECK_EQ(crc, bit_by_bit(bytes, nbytes));
			CHECK_EQ(mmc_crc32c(0, bytes, nbytes), crc);
		}
}

CHECK_MAIN(CHECK_TEST(published_values), CHECK_TEST(any_bytes_in_parts))
