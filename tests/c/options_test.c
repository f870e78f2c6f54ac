/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that no team can have are refused, and the reason names them. */
#include "engine/options.h"

#include "check.h"
#include "core/types.h"

static const struct mmc_team_options usual = {
	.rank = 1,
	.nranks = 2,
	.subgroups = 1,
	.chunk_bytes = 1,
};

static void refused(const struct mmc_team_options *options, const char *why)
{
	CHECK_EQ(mmc_options_check(options), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), why) != NULL);
}

static void ranks(void)
{
	struct mmc_team_options options = usual;

	CHECK_EQ(mmc_options_check(&options), 0);
	options.nranks = UINT32_C(1) << MMC_ROUNDS_MAX;
	CHECK_EQ(mmc_options_check(&options), 0);
	options.nranks++;
	refused(&options, "rank 1 of 1048577 ranks");
	options.nranks = options.rank;
	refused(&options, "rank 1 of 1 ranks");
	options.nranks = 0;
	refused(&options, "rank 1 of 0 ranks");
}

static void each_of_the_others(void)
{
	struct mmc_team_options options = usual;

	options.chunk_bytes = 0;
	refused(&options, "0 bytes per chunk");
	options = usual;
	options.subgroups = 0;
	refused(&options, "0 subgroups");
	options = usual;
	options.checksum = MMC_CHECKSUM_FULL + 1;
	refused(&options, "checksum mode 3");
	options = usual;
	options.protect = MMC_PROTECT_ENCRYPT + 1;
	refused(&options, "protection 3");
}

CHECK_MAIN(CHECK_TEST(ranks), CHECK_TEST(each_of_the_others))
