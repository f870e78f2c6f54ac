/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the engine's memory comes from on a processor without an operating system: a
 * fixed range, cut into pieces of powers of two. What is freed is kept for the next
 * piece of its size. The engine takes memory when teams and streams open and when an
 * operation is larger than any before it; all other operations use it again.
 */
#ifndef MMC_FIRMWARE_ARENA_H
#define MMC_FIRMWARE_ARENA_H

#include <stddef.h>

/* Every piece begins at a multiple of this. */
#define MMC_ARENA_ALIGN_BYTES 64

/* Returns how many bytes were taken from the range so far, those freed included. */
size_t mmc_arena_used_bytes(void);

#endif
