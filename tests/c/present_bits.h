/* SPDX-License-Identifier: BSD-3-Clause */
/* The bits of chunks that a program looks at. */
#ifndef MMC_TESTS_PRESENT_BITS_H
#define MMC_TESTS_PRESENT_BITS_H

#include <mpimcast/partial.h>

/* Returns how many of the bits are set, and writes how many there are. */
static inline uint32_t nset(const struct mmc_present *present, uint32_t *nbits)
{
	const uint64_t *words = mmc_present_words(present, nbits);
	uint32_t n = 0;

	for (uint32_t i = 0; i < *nbits; i++)
		n += (words[i / 64] >> i % 64 & 1) != 0;
	return n;
}

#endif
