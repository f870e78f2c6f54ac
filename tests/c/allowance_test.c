/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/allowance.h"

#include "check.h"

/* It is half a round trip, neither very short nor long, but no chunk was slower. */
static void half_a_round_trip(void)
{
	CHECK_EQ(mmc_allowance_ns(400 * MMC_US_NS, 0), 200 * MMC_US_NS);
	CHECK_EQ(mmc_allowance_ns(MMC_US_NS, 0), MMC_ALLOWANCE_MIN_NS);
	CHECK_EQ(mmc_allowance_ns(MMC_S_NS, 0), MMC_ALLOWANCE_MAX_NS);
	CHECK_EQ(mmc_allowance_ns(400 * MMC_US_NS, 100 * MMC_US_NS),
		 200 * MMC_US_NS);
	CHECK_EQ(mmc_allowance_ns(MMC_S_NS, 16 * MMC_MS_NS), 16 * MMC_MS_NS);
}

CHECK_MAIN(CHECK_TEST(half_a_round_trip))
