/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that the calling thread's last failed call adds to its error code. */
#ifndef MMC_SUPPORT_ERROR_H
#define MMC_SUPPORT_ERROR_H

/* Sets the text, formatted as by printf(); text that does not fit is cut off. */
__attribute__((format(printf, 1, 2))) void mmc_error_set(const char *format,
							 ...);

#endif
