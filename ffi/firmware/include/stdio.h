/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the C library's <stdio.h> that the engine and the simulator use. */
#ifndef MMC_FIRMWARE_STDIO_H
#define MMC_FIRMWARE_STDIO_H

#include <stdarg.h>
#include <stddef.h>

/*
 * As in C, for the conversions d, u, lu, llu, s and c, with a width for the unsigned: all that
 * the engine and the simulator use. Both return how long the text is as it was cut.
 */
int vsnprintf(char *restrict to, size_t size, const char *restrict format,
	      va_list arguments);
__attribute__((format(printf, 3, 4))) int
snprintf(char *restrict to, size_t size, const char *restrict format, ...);

#endif
