/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the C library's <string.h> that is used here; bare targets have none. */
#ifndef MMC_FIRMWARE_STRING_H
#define MMC_FIRMWARE_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t nbytes);
void *memmove(void *to, const void *from, size_t nbytes);
void *memset(void *to, int byte, size_t nbytes);
int memcmp(const void *a, const void *b, size_t nbytes);
void *memchr(const void *bytes, int byte, size_t nbytes);
int strcmp(const char *a, const char *b);
size_t strlen(const char *text);

#endif
