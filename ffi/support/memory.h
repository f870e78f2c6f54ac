/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcpy() and memset(), and how one block of memory is divided into parts. A
 * freestanding compiler calls the two functions on its own, so every target has them;
 * they are declared here because bare targets have no <string.h>.
 */
#ifndef MMC_SUPPORT_MEMORY_H
#define MMC_SUPPORT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t nbytes);
void *memset(void *to, int byte, size_t nbytes);

/* Every part begins at a multiple of this, if the block itself does. */
#define MMC_ALIGN_BYTES 16

/* Returns how many bytes of the block a part of `nbytes` takes. */
static inline size_t mmc_part_bytes(size_t nbytes)
{
	return (nbytes + MMC_ALIGN_BYTES - 1) & ~(size_t)(MMC_ALIGN_BYTES - 1);
}

/*
 * Returns a part of `nbytes` at the front of what is left of the block, which is at
 * `*cursor`, and moves `*cursor` behind the part.
 */
static inline void *mmc_part_take(uint8_t **cursor, size_t nbytes)
{
	void *part = *cursor;

	*cursor += mmc_part_bytes(nbytes);
	return part;
}

#endif
