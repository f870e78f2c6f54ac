/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the C library's <stdlib.h> that the engine uses; bare targets have none. */
#ifndef MMC_FIRMWARE_STDLIB_H
#define MMC_FIRMWARE_STDLIB_H

#include <stddef.h>

void *malloc(size_t nbytes);
void *calloc(size_t n, size_t nbytes);
void *realloc(void *memory, size_t nbytes);
void *aligned_alloc(size_t alignment, size_t nbytes);
void free(void *memory);

#endif
