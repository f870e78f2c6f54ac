/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds bring each rank every block once, and messages keep to their limit. */
#include "check.h"
#include "core/plan/rounds.h"
#include "support/bits.h"

#define NRANKS_MAX 130

/* With what is carried, each rank comes to have each block, and never gets one twice. */
static void every_block_once(void)
{
	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++) {
		uint32_t nheld = 1;

		for (unsigned k = 0; k < mmc_log2_ceil(nranks); k++) {
			uint32_t count = mmc_rounds_blocks(nranks, k);

			/* What rank r - 2^k has ends right before what rank r has. */
			CHECK_EQ(nheld, UINT32_C(1) << k);
			CHECK(count >= 1 && count <= nheld);
			nheld += count;
		}
		CHECK_EQ(nheld, nranks);
	}
}

/* Only equal blocks are carried, of any number of chunks, and no more than is allowed. */
static void what_is_carried(void)
{
	static const uint64_t uneven[] = { 5, 6, 5 };
	struct mmc_layout layout;

	CHECK_EQ(mmc_layout_init(&layout, 8, 25, 100), 0);
	CHECK(mmc_rounds_carry(&layout, 100));
	CHECK(!mmc_rounds_carry(&layout, 99));
	CHECK(!mmc_rounds_carry(&layout, 0));
	CHECK_EQ(mmc_layout_init(&layout, 24, 10, 100), 0);
	CHECK(mmc_rounds_carry(&layout, 80));
	CHECK(!mmc_rounds_carry(&layout, 79));
	CHECK_EQ(mmc_layout_init(&layout, 8, 25, 24), 0);
	CHECK(mmc_rounds_carry(&layout, 100));
	CHECK(!mmc_rounds_carry(&layout, 99));
	CHECK_EQ(mmc_layout_init(&layout, 1, 25, 100), 0);
	CHECK(!mmc_rounds_carry(&layout, 1000));
	CHECK_EQ(mmc_layout_init(&layout, 8, 0, 100), 0);
	CHECK(!mmc_rounds_carry(&layout, 1000));
	CHECK_EQ(mmc_layout_init_each(&layout, 3, uneven, 100), 0);
	CHECK(!mmc_rounds_carry(&layout, 1000));
}

CHECK_MAIN(CHECK_TEST(every_block_once), CHECK_TEST(what_is_carried))
