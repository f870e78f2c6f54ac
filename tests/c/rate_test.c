/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/rate.h"

#include "check.h"

/* Bytes take their time at a rate, also so many that nanoseconds would overflow. */
static void bytes_take_time(void)
{
	const uint64_t many = UINT64_C(1) << 50;

	CHECK_EQ(mmc_rate_time_ns(1000000000, 0), 0);
	CHECK_EQ(mmc_rate_time_ns(1000000000, 12345), 12345);
	CHECK_EQ(mmc_rate_time_ns(3, 1), MMC_S_NS / 3);
	CHECK_EQ(mmc_rate_time_ns(UINT64_C(1) << 30, many),
		 (UINT64_C(1) << 20) * MMC_S_NS);
}

/* A measurement moves the smoothed rate by a quarter of the difference. */
static void measurements_are_smoothed(void)
{
	CHECK_EQ(mmc_rate_smooth(1000, 1000), 1000);
	CHECK_EQ(mmc_rate_smooth(1000, 2000), 1250);
	CHECK_EQ(mmc_rate_smooth(1000, 0), 750);
}

CHECK_MAIN(CHECK_TEST(bytes_take_time), CHECK_TEST(measurements_are_smoothed))
