/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of a library are found by their names, and what is missing is named. */
#include <mpimcast/mmc.h>

#include "check.h"
#include "support/library.h"

struct table {
	size_t (*length)(const char *);
	int (*compare)(const char *, const char *);
};

static const struct mmc_library_symbol symbols[] = {
	{ "strcmp", offsetof(struct table, compare) },
	{ "strlen", offsetof(struct table, length) },
};

static void functions(void)
{
	struct table table;

	CHECK_EQ(mmc_library_open("libc.so.6", symbols, 2, &table), 0);
	CHECK_EQ(table.length("four"), 4);
	CHECK_EQ(table.compare("a", "a"), 0);
}

static void no_library(void)
{
	struct table table;

	CHECK_EQ(mmc_library_open("libmissing.so", symbols, 2, &table),
		 -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "libmissing.so") != NULL);
}

static void no_function(void)
{
	const struct mmc_library_symbol missing = { "missing_function", 0 };
	struct table table;

	CHECK_EQ(mmc_library_open("libc.so.6", &missing, 1, &table),
		 -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "missing_function") != NULL);
}

CHECK_MAIN(CHECK_TEST(functions), CHECK_TEST(no_library),
	   CHECK_TEST(no_function))
