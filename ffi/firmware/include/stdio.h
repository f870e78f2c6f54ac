/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the C library's <stdio.h> that the engine and the simulator use. */
#ifndef MMC_FIRMWARE_STDIO_H
#define MMC_FIRMWARE_STDIO_H

#include <stdarg.h>
#include <stddef.h>

/*
 * These format as in C, but know only the conversions that the engine and the simulator
 * use: d, u, lu, llu, s and c, and for unsigned numbers a width, which pads with zeros.
 * `size` is not 0. They return the length of the text after it was cut off.
 */
int vsnprintf(char *restrict to, size_t size, const char *restrict format,
	      va_list arguments);
__attribute__((format(printf, 3, 4))) int
snprintf(char *restrict to, size_t size, const char *restrict format, ...);

#endif
