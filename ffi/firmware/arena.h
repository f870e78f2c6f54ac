/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator behind malloc() on a processor without an operating system. It cuts a
 * fixed range of memory into pieces, whose sizes are powers of two, and keeps freed pieces
 * for later allocations of the same size. The engine allocates when a team or a stream
 * opens, and when an operation is larger than any before it; other operations use the
 * memory of earlier ones.
 */
#ifndef MMC_FIRMWARE_ARENA_H
#define MMC_FIRMWARE_ARENA_H

#include <stddef.h>

/* Every piece begins at a multiple of this. */
#define MMC_ARENA_ALIGN_BYTES 64

/* Returns how many bytes of the range were cut into pieces, free ones included. */
size_t mmc_arena_used_bytes(void);

#endif
