/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The field GF(256) of bytes, with x^8 + x^4 + x^3 + x^2 + 1 as its polynomial, which
 * ISA-L has as well. The sum of two elements is their exclusive or, so each is its own negative.
 */
#ifndef MMC_CODE_FIELD_H
#define MMC_CODE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many elements there are but 0: the powers of 2, from 0 to this less one. */
#define MMC_FIELD_ORDER 255u

/* Returns of which power of 2, below MMC_FIELD_ORDER, an element is the value; not for 0. */
unsigned mmc_field_log(uint8_t element);

/* Returns a power of 2. */
uint8_t mmc_field_power(unsigned exponent);

/* Returns the product of two elements. */
uint8_t mmc_field_multiply(uint8_t a, uint8_t b);

/*
 * Adds the product of `coefficient` and each of the `nbytes` of `source` to the byte at the
 * same place of `sum`, which does not overlap `source`.
 */
void mmc_field_add(uint8_t coefficient, const uint8_t *source, size_t nbytes,
		   uint8_t *sum);

#endif
