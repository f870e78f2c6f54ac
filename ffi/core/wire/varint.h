/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integers of variable length, most of them small, as in RFC 9000, section 16: the two
 * highest bits of the first byte tell whether 1, 2 or 4 bytes hold the number. The
 * length of 8 bytes is not used, and only the shortest encoding of a number is
 * accepted.
 */
#ifndef MMC_CORE_WIRE_VARINT_H
#define MMC_CORE_WIRE_VARINT_H

#include "core/wire/header.h"
#include "support/bits.h"

/* The largest number, and the bytes that it takes. */
#define MMC_VARINT_MAX ((UINT32_C(1) << 30) - 1)
#define MMC_VARINT_BYTES_MAX 4

/* Returns the bytes that `value`, at most MMC_VARINT_MAX, takes. */
static inline size_t mmc_varint_bytes(uint32_t value)
{
	if (value < 1 << 6)
		return 1;
	return value < 1 << 14 ? 2 : 4;
}

/* Writes `value`, at most MMC_VARINT_MAX, to `bytes`; returns where it ends. */
static inline uint8_t *mmc_varint_put(uint8_t *bytes, uint32_t value)
{
	size_t nbytes = mmc_varint_bytes(value);

	for (size_t i = 0; i < nbytes; i++)
		bytes[i] = (uint8_t)(value >> (8 * (nbytes - 1 - i)));
	/* The highest two bits are 0, 1 or 2 for 1, 2 or 4 bytes. */
	bytes[0] |= (uint8_t)((nbytes >> 1) << 6);
	return bytes + nbytes;
}

/*
 * Reads a number at `*bytes`, and moves `*bytes` behind it. Returns 0, -MMC_ESHORT if
 * `end`, where the bytes end, cuts the number off, or -MMC_EINVAL if it has 8 bytes or
 * could have fewer.
 */
static inline int mmc_varint_take(const uint8_t **bytes, const uint8_t *end,
				  uint32_t *value)
{
	const uint8_t *first = *bytes;
	size_t nbytes;

	if (first == end)
		return -MMC_ESHORT;
	if (first[0] >> 6 == 3)
		return -MMC_EINVAL;
	nbytes = (size_t)1 << (first[0] >> 6);
	if ((size_t)(end - first) < nbytes)
		return -MMC_ESHORT;
	*value = first[0] & 0x3f;
	for (size_t i = 1; i < nbytes; i++)
		*value = *value << 8 | first[i];
	*bytes = first + nbytes;
	return mmc_varint_bytes(*value) == nbytes ? 0 : -MMC_EINVAL;
}

#endif
