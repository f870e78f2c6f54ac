/* SPDX-License-Identifier: BSD-3-Clause */
/* The product of GF(256) by its definition: of polynomials, modulo that of the field. */
#ifndef MMC_TESTS_FIELD_SLOW_H
#define MMC_TESTS_FIELD_SLOW_H

#include <stdint.h>

static inline uint8_t slow_multiply(uint8_t a, uint8_t b)
{
	unsigned product = 0;

	for (unsigned bit = 0; bit < 8; bit++)
		if (b >> bit & 1)
			product ^= (unsigned)a << bit;
	for (unsigned bit = 15; bit >= 8; bit--)
		if (product >> bit & 1)
			product ^= 0x11du << (bit - 8);
	return (uint8_t)product;
}

#endif
