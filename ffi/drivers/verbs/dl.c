/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/dl.h"

#include <dlfcn.h>
#include <mpimcast/errors.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/error.h"

struct mmc_ibv mmc_ibv;
struct mmc_cm mmc_cm;

struct symbol {
	const char *name;
	const char *version;
	size_t offset; /* of the member in the table */
};

#define IBV_SYMBOL(prefix, name, version)                                      \
	{ #prefix "_" #name, version, offsetof(struct mmc_ibv, name) },
#define CM_SYMBOL(prefix, name, version)                                       \
	{ #prefix "_" #name, version, offsetof(struct mmc_cm, name) },

static const struct symbol ibv_symbols[] = { MMC_IBVERBS_SYMBOLS(IBV_SYMBOL) };
static const struct symbol cm_symbols[] = { MMC_RDMACM_SYMBOLS(CM_SYMBOL) };

/* Why the libraries could not be loaded, or "". */
static char failure[256];

/* Writes to `table` the functions of the library `name`. Returns whether it has all. */
static bool load(const char *name, const struct symbol *symbols, size_t count,
		 void *table)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		snprintf(failure, sizeof(failure), "%s", dlerror());
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		void *symbol =
			dlvsym(library, symbols[i].name, symbols[i].version);

		if (symbol == NULL) {
			snprintf(failure, sizeof(failure),
				 "%s has no %s of %s: rdma-core 32 or later is "
				 "needed",
				 name, symbols[i].name, symbols[i].version);
			return false;
		}
		/* ISO C does not allow a cast from `void *` to a function. */
		memcpy((char *)table + symbols[i].offset, &symbol,
		       sizeof(symbol));
	}
	return true;
}

static void load_both(void)
{
	if (!load("libibverbs.so.1", ibv_symbols,
		  sizeof(ibv_symbols) / sizeof(ibv_symbols[0]), &mmc_ibv) ||
	    !load("librdmacm.so.1", cm_symbols,
		  sizeof(cm_symbols) / sizeof(cm_symbols[0]), &mmc_cm))
		return;
	/*
	 * With kernels before 5.12, after fork() the child keeps the pages that the
	 * device knows, and the parent gets copies, of which the device does not know.
	 * This call prevents that. It may fail if other code of the process has
	 * registered memory already; then that code is responsible.
	 */
	mmc_ibv.fork_init();
}

int mmc_verbs_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_both);
	if (failure[0] == '\0')
		return 0;
	mmc_error_set("%s", failure);
	return -MMC_ENODEV;
}
