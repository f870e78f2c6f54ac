/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers that back off, and waits that count observed time only. */
#include "check.h"
#include "support/timer.h"

/* Intervals double, up to the greatest. */
static void asks_ever_more_rarely(void)
{
	struct mmc_backoff backoff;
	uint64_t now_ns = 1000;
	uint64_t interval_ns = 200 * MMC_US_NS;

	mmc_backoff_start(&backoff, now_ns, interval_ns);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(backoff.at_ns, now_ns + interval_ns);
		CHECK(!mmc_backoff_fire(&backoff, backoff.at_ns - 1));
		now_ns = backoff.at_ns;
		CHECK(mmc_backoff_fire(&backoff, now_ns));
		CHECK(!mmc_backoff_fire(&backoff, now_ns));
		interval_ns = mmc_min_u64(2 * interval_ns, MMC_BACKOFF_MAX_NS);
	}
	CHECK_EQ(interval_ns, MMC_BACKOFF_MAX_NS);
}

/* A caller that looks late asks once, not once for each interval that has passed. */
static void asks_once_when_late(void)
{
	struct mmc_backoff backoff;

	mmc_backoff_start(&backoff, 0, MMC_MS_NS);
	CHECK(mmc_backoff_fire(&backoff, MMC_S_NS));
	CHECK(!mmc_backoff_fire(&backoff, MMC_S_NS));
	CHECK_EQ(backoff.at_ns, MMC_S_NS + 2 * MMC_MS_NS);
}

/* A timer that was stopped does not fire. */
static void stopped(void)
{
	struct mmc_backoff backoff;

	mmc_backoff_start(&backoff, 0, MMC_MS_NS);
	mmc_backoff_stop(&backoff);
	CHECK(!mmc_backoff_fire(&backoff, MMC_NEVER_NS - 1));
}

/* A wait that is observed on time ends on time. */
static void waits_end(void)
{
	uint64_t observed_ns = 5;
	uint64_t spent_ns = 0;
	unsigned nlooks = 0;

	while (spent_ns < MMC_S_NS && CHECK(nlooks++ < 100)) {
		uint64_t next_ns =
			mmc_observe_deadline(observed_ns, spent_ns, MMC_S_NS);

		CHECK(next_ns > observed_ns);
		CHECK(next_ns <= observed_ns + MMC_OBSERVED_NS_MAX);
		spent_ns += mmc_observe(&observed_ns, next_ns);
	}
	CHECK_EQ(observed_ns, 5 + MMC_S_NS);
	CHECK_EQ(mmc_observe_deadline(observed_ns, spent_ns, MMC_S_NS),
		 MMC_NEVER_NS);
}

/* An hour for which the process was stopped counts as MMC_OBSERVED_NS_MAX. */
static void a_stop_is_no_wait(void)
{
	uint64_t observed_ns = 0;

	CHECK_EQ(mmc_observe(&observed_ns, 3600 * MMC_S_NS),
		 MMC_OBSERVED_NS_MAX);
	CHECK_EQ(observed_ns, 3600 * MMC_S_NS);
	CHECK_EQ(mmc_observe(&observed_ns, 3600 * MMC_S_NS + 7), 7);
}

/* A wait without a limit is observed as often as any other. */
static void no_limit(void)
{
	CHECK_EQ(mmc_observe_deadline(MMC_S_NS, 0, MMC_NEVER_NS),
		 MMC_S_NS + MMC_OBSERVED_NS_MAX);
}

/* An interval that has to be longer than a backoff's does not shrink, nor grow. */
static void fires_no_more_often_than_asked(void)
{
	const uint64_t least_ns = 3 * MMC_BACKOFF_MAX_NS;
	struct mmc_backoff backoff;

	mmc_backoff_start(&backoff, 0, least_ns);
	CHECK(!mmc_backoff_fire_rarely(&backoff, least_ns, least_ns - 1));
	CHECK(mmc_backoff_fire_rarely(&backoff, least_ns, least_ns));
	CHECK_EQ(backoff.at_ns, 2 * least_ns);
	CHECK_EQ(backoff.interval_ns, least_ns);
	mmc_backoff_start(&backoff, 0, MMC_MS_NS);
	CHECK(mmc_backoff_fire_rarely(&backoff, 0, MMC_MS_NS));
	CHECK_EQ(backoff.interval_ns, 2 * MMC_MS_NS);
}

CHECK_MAIN(CHECK_TEST(fires_no_more_often_than_asked),
	   CHECK_TEST(asks_ever_more_rarely), CHECK_TEST(asks_once_when_late),
	   CHECK_TEST(stopped), CHECK_TEST(waits_end),
	   CHECK_TEST(a_stop_is_no_wait), CHECK_TEST(no_limit))
