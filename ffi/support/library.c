/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/library.h"

#include <dlfcn.h>
#include <mpimcast/errors.h>
#include <string.h>

#include "support/error.h"

int mmc_library_open(const char *name, const struct mmc_library_symbol *symbols,
		     size_t count, void *table)
{
	/*
	 * Lazily, since the library may be a module of Python that needs functions of
	 * its interpreter besides those that are asked for here.
	 */
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

	if (library == NULL) {
		mmc_error_set("%s", dlerror());
		return -MMC_ENODEV;
	}
	for (size_t i = 0; i < count; i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (symbol == NULL) {
			mmc_error_set("%s has no %s", name, symbols[i].name);
			return -MMC_ENODEV;
		}
		/* ISO C does not allow a cast from `void *` to a function. */
		memcpy((char *)table + symbols[i].offset, &symbol,
		       sizeof(symbol));
	}
	return 0;
}
