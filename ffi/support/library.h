/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a shared library at run time and looks up its functions by name. */
#ifndef MMC_SUPPORT_LIBRARY_H
#define MMC_SUPPORT_LIBRARY_H

#include <stddef.h>

/* A function's name, and where in the table its address goes. */
struct mmc_library_symbol {
	const char *name;
	size_t offset;
};

/*
 * Opens the library `name`, which stays open, and writes the addresses of the `count`
 * functions of `symbols` to `table`. Returns 0, or -MMC_ENODEV with the reason set.
 */
int mmc_library_open(const char *name, const struct mmc_library_symbol *symbols,
		     size_t count, void *table);

#endif
