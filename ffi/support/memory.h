/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that a freestanding compiler requires of its host anyway, declared here
 * because bare targets have no <string.h>, and the carving of one block of memory into
 * parts.
 */
#ifndef MMC_SUPPORT_MEMORY_H
#define MMC_SUPPORT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t nbytes);
void *memset(void *to, int byte, size_t nbytes);

/* Every part begins at a multiple of this, so that two never share a word. */
#define MMC_ALIGN_BYTES 16

/* Returns the bytes that a part of `nbytes` takes of a block. */
static inline size_t mmc_part_bytes(size_t nbytes)
{
	return (nbytes + MMC_ALIGN_BYTES - 1) & ~(size_t)(MMC_ALIGN_BYTES - 1);
}

/* Takes a part of `nbytes` from the front of the block at `*cursor`. */
static inline void *mmc_part_take(uint8_t **cursor, size_t nbytes)
{
	void *part = *cursor;

	*cursor += mmc_part_bytes(nbytes);
	return part;
}

#endif
