/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/crc32c.h"

#include <string.h>

/*
 * The CRC of a single byte by Castagnoli's polynomial, which is 0x82f63b78 when its lowest
 * bit is sent first. CRCs are linear: that of a byte is the XOR of those of its bits.
 */
#define OF_BYTE(byte)                                                          \
	(((byte)&0x1 ? UINT32_C(0xf26b8303) : 0) ^                             \
	 ((byte)&0x2 ? UINT32_C(0xe13b70f7) : 0) ^                             \
	 ((byte)&0x4 ? UINT32_C(0xc79a971f) : 0) ^                             \
	 ((byte)&0x8 ? UINT32_C(0x8ad958cf) : 0) ^                             \
	 ((byte)&0x10 ? UINT32_C(0x105ec76f) : 0) ^                            \
	 ((byte)&0x20 ? UINT32_C(0x20bd8ede) : 0) ^                            \
	 ((byte)&0x40 ? UINT32_C(0x417b1dbc) : 0) ^                            \
	 ((byte)&0x80 ? UINT32_C(0x82f63b78) : 0))
#define OF_4(byte)                                                             \
	OF_BYTE(byte), OF_BYTE((byte) + 1), OF_BYTE((byte) + 2),               \
		OF_BYTE((byte) + 3)
#define OF_16(byte)                                                            \
	OF_4(byte), OF_4((byte) + 4), OF_4((byte) + 8), OF_4((byte) + 12)
#define OF_64(byte)                                                            \
	OF_16(byte), OF_16((byte) + 16), OF_16((byte) + 32), OF_16((byte) + 48)

static const uint32_t table[256] = { OF_64(0), OF_64(64), OF_64(128),
				     OF_64(192) };

static uint32_t by_table(uint32_t crc, const uint8_t *bytes, size_t nbytes)
{
	while (nbytes-- > 0)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return crc;
}

#if defined(__x86_64__)
/* The instruction is a part of SSE 4.2, but Clang 14 and later name it separately. */
#if defined(__clang__)
#define TARGET "crc32"
#else
#define TARGET "sse4.2"
#endif

__attribute__((target(TARGET))) static uint32_t
by_instruction(uint32_t crc, const uint8_t *bytes, size_t nbytes)
{
	uint64_t wide = crc;

	for (; nbytes >= 8; bytes += 8, nbytes -= 8) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	return by_table((uint32_t)wide, bytes, nbytes);
}
#endif

uint32_t mmc_crc32c(uint32_t crc, const void *bytes, size_t nbytes)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~by_instruction(~crc, bytes, nbytes);
#endif
	return ~by_table(~crc, bytes, nbytes);
}
