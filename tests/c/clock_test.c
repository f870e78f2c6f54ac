/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/clock.h"

#include "check.h"

static uint64_t ns_of(struct timespec time)
{
	return (uint64_t)time.tv_sec * MMC_S_NS + (uint64_t)time.tv_nsec;
}

/* The clock is the kernel's monotonic one, as timer descriptors need. */
static void reads_the_monotonic_clock(void)
{
	struct timespec before;
	struct timespec after;
	uint64_t now_ns;

	for (unsigned i = 0; i < 100; i++) {
		clock_gettime(CLOCK_MONOTONIC, &before);
		now_ns = mmc_clock_now_ns();
		clock_gettime(CLOCK_MONOTONIC, &after);
		CHECK(ns_of(before) <= now_ns);
		CHECK(now_ns <= ns_of(after));
	}
}

static void splits_into_seconds(void)
{
	static const uint64_t times_ns[] = { 0,
					     1,
					     MMC_S_NS - 1,
					     MMC_S_NS,
					     MMC_S_NS + 1,
					     3600 * MMC_S_NS + 999999999,
					     INT64_MAX / 2 };

	for (unsigned i = 0; i < sizeof(times_ns) / sizeof(*times_ns); i++) {
		struct timespec time = mmc_clock_timespec(times_ns[i]);

		CHECK_EQ(ns_of(time), times_ns[i]);
		CHECK(time.tv_nsec >= 0);
		CHECK(time.tv_nsec < (long)MMC_S_NS);
	}
}

CHECK_MAIN(CHECK_TEST(reads_the_monotonic_clock),
	   CHECK_TEST(splits_into_seconds))
