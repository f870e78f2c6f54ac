/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/range.h"

#include <mpimcast/errors.h>
#include <mpimcast/mmc.h>

#include "check.h"

/* A range lies in a block if it ends there, however large its numbers are. */
static void ranges_in_a_block(void)
{
	static const struct {
		uint64_t first_bytes;
		uint64_t nbytes;
		int found;
	} rows[] = {
		{ 0, 0, 0 },
		{ 0, 100, 0 },
		{ 100, 0, 0 },
		{ 40, 60, 0 },
		{ 40, 61, -MMC_EINVAL },
		{ 101, 0, -MMC_EINVAL },
		{ UINT64_MAX, 2, -MMC_EINVAL },
		{ 2, UINT64_MAX, -MMC_EINVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct mmc_range range = {
			.rank = 3,
			.first_bytes = rows[i].first_bytes,
			.nbytes = rows[i].nbytes,
		};

		CHECK_EQ(mmc_range_check(&range, 100), rows[i].found);
	}
}

/* The error names the range, the rank and the size of its block. */
static void the_error_says_it(void)
{
	const struct mmc_range range = { .rank = 3,
					 .first_bytes = 40,
					 .nbytes = 61 };

	CHECK_EQ(mmc_range_check(&range, 100), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "61 bytes from byte 40 on") != NULL);
	CHECK(strstr(mmc_last_error(), "rank 3, which has 100") != NULL);
}

/* Each rank's block has one number, and this rank's is the first. */
static void blocks_that_land_together(void)
{
	static const uint32_t orders[][4] = {
		{ 0, 1, 2, 3 },
		{ 1, 0, 2, 3 },
		{ 2, 0, 1, 3 },
		{ 3, 0, 1, 2 },
	};

	for (uint32_t own = 0; own < 4; own++)
		for (uint32_t i = 0; i < 4; i++)
			CHECK_EQ(mmc_landed_together(own, i), orders[own][i]);
}

CHECK_MAIN(CHECK_TEST(ranges_in_a_block), CHECK_TEST(the_error_says_it),
	   CHECK_TEST(blocks_that_land_together))
