/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic on words and numbers that needs no support library of the compiler, since
 * bare targets have none.
 */
#ifndef MMC_SUPPORT_BITS_H
#define MMC_SUPPORT_BITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the number of zero bits below the lowest set bit of `word`, which is not 0.
 */
static inline uint32_t mmc_lowest_bit(uint64_t word)
{
#if defined(__riscv) && !defined(__riscv_zbb)
	/* No instruction counts trailing zeros here: this is a binary search. */
	uint32_t bit = 0;

	for (uint32_t half = 32; half != 0; half /= 2) {
		if ((word & ((UINT64_C(1) << half) - 1)) == 0) {
			word >>= half;
			bit += half;
		}
	}
	return bit;
#else
	return (uint32_t)__builtin_ctzll(word);
#endif
}

/* Returns the number of set bits of `word`. */
static inline uint32_t mmc_set_bits(uint64_t word)
{
	/* Adds up neighbouring bits, then pairs, then nibbles, then all bytes. */
	word -= (word >> 1) & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) +
	       ((word >> 2) & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)((word * UINT64_C(0x0101010101010101)) >> 56);
}

/*
 * Returns the smallest k with 2^k >= n, which is the number of rounds that a barrier of
 * n ranks has.
 */
static inline uint32_t mmc_log2_ceil(uint32_t n)
{
	uint32_t k = 0;

	while ((UINT64_C(1) << k) < n)
		k++;
	return k;
}

static inline uint32_t mmc_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t mmc_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline uint64_t mmc_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t mmc_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns whether epoch `a` comes after epoch `b`, modulo 2^32 (RFC 1982). */
static inline bool mmc_epoch_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

#endif
