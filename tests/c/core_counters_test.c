/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/counters.h"

#include <mpimcast/mmc.h>

#include "check.h"

/* What is counted is added to one counter, and the others stay as they are. */
static void counts_add_up(void)
{
	for (unsigned c = 0; c < MMC_COUNTER_COUNT; c++) {
		struct mmc_counters counters = { 0 };

		mmc_count(&counters, (enum mmc_counter)c, 5);
		mmc_count(&counters, (enum mmc_counter)c, 0);
		mmc_count(&counters, (enum mmc_counter)c, UINT32_MAX);
		for (unsigned i = 0; i < MMC_COUNTER_COUNT; i++)
			CHECK_EQ(counters.value[i],
				 i == c ? UINT64_C(5) + UINT32_MAX : 0);
	}
}

/* Users read the counters by name, in the table's order. */
static void every_counter_has_its_name(void)
{
	static const char *const names[] = {
#define NAME(counter, name) [MMC_COUNT_##counter] = name,
		MMC_COUNTER_TABLE(NAME)
#undef NAME
	};

	CHECK_EQ(mmc_counter_count(), MMC_COUNTER_COUNT);
	for (uint32_t c = 0; c < MMC_COUNTER_COUNT; c++) {
		CHECK(strcmp(mmc_counter_name(c), names[c]) == 0);
		for (uint32_t other = 0; other < c; other++)
			CHECK(strcmp(names[c], names[other]) != 0);
	}
}

CHECK_MAIN(CHECK_TEST(counts_add_up), CHECK_TEST(every_counter_has_its_name))
