/* SPDX-License-Identifier: BSD-3-Clause */
/* Each error code has a text of its own. */
#include <mpimcast/mmc.h>

#include "check.h"
#include "core/types.h"

static void each_code_has_its_text(void)
{
	const char *unknown = mmc_strerror(MMC_ERROR_MAX + 1);

	for (int code = 0; code <= MMC_ERROR_MAX; code++) {
		CHECK(strcmp(mmc_strerror(code), unknown) != 0);
		CHECK(strcmp(mmc_strerror(-code), mmc_strerror(code)) == 0);
		for (int other = 0; other < code; other++)
			CHECK(strcmp(mmc_strerror(code), mmc_strerror(other)) !=
			      0);
	}
	CHECK(strcmp(mmc_strerror(1000), unknown) == 0);
}

CHECK_MAIN(CHECK_TEST(each_code_has_its_text))
