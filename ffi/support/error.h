/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that mmc_last_error() returns: one for each thread. */
#ifndef MMC_SUPPORT_ERROR_H
#define MMC_SUPPORT_ERROR_H

/* Sets the calling thread's text, formatted as by printf() and cut off at 511 bytes. */
__attribute__((format(printf, 1, 2))) void mmc_error_set(const char *format,
							 ...);

#endif
