/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/crc32c.h"

#include <pthread.h>
#include <string.h>

/*
 * Castagnoli's polynomial with its bits reversed: the CRC takes the lowest bit first.
 */
#define POLYNOMIAL UINT32_C(0x82f63b78)

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[i] = crc;
	}
}

static uint32_t by_table(uint32_t crc, const uint8_t *bytes, size_t nbytes)
{
	pthread_once(&table_once, fill_table);
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
