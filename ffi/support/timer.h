/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two kinds of timers. A backoff falls due ever more rarely. A wait counts only the
 * time during which this process ran and looked at the clock.
 */
#ifndef MMC_SUPPORT_TIMER_H
#define MMC_SUPPORT_TIMER_H

#include "support/bits.h"
#include "support/time.h"

/* The longest interval that a backoff grows to: a lost question is repeated by then. */
#define MMC_BACKOFF_MAX_NS (20 * MMC_MS_NS)

/* A timer that repeats: its interval doubles each time that it falls due. */
struct mmc_backoff {
	uint64_t at_ns; /* when it falls due; MMC_NEVER_NS: it is stopped */
	uint64_t interval_ns; /* the time until `at_ns` when it was set */
};

/* Stops `backoff`: it falls due no more until it is started again. */
static inline void mmc_backoff_stop(struct mmc_backoff *backoff)
{
	backoff->at_ns = MMC_NEVER_NS;
}

/* Starts `backoff`, which falls due after `interval_ns` for the first time. */
static inline void mmc_backoff_start(struct mmc_backoff *backoff,
				     uint64_t now_ns, uint64_t interval_ns)
{
	backoff->at_ns = now_ns + interval_ns;
	backoff->interval_ns = interval_ns;
}

/*
 * Returns whether `backoff` has fallen due. If so, doubles its interval, up to
 * MMC_BACKOFF_MAX_NS or `least_ns`, whichever is longer, and lets it run again.
 */
static inline bool mmc_backoff_fire_rarely(struct mmc_backoff *backoff,
					   uint64_t least_ns, uint64_t now_ns)
{
	if (now_ns < backoff->at_ns)
		return false;
	backoff->interval_ns =
		mmc_min_u64(2 * backoff->interval_ns,
			    mmc_max_u64(least_ns, MMC_BACKOFF_MAX_NS));
	backoff->at_ns = now_ns + backoff->interval_ns;
	return true;
}

/* Does the same with no other bound than MMC_BACKOFF_MAX_NS. */
static inline bool mmc_backoff_fire(struct mmc_backoff *backoff,
				    uint64_t now_ns)
{
	return mmc_backoff_fire_rarely(backoff, 0, now_ns);
}

/*
 * The most that one look at the clock adds to a wait. A longer time since the last look
 * means that the process was stopped, or its machine suspended: it could not hear its
 * peers, so it has not waited for them.
 */
#define MMC_OBSERVED_NS_MAX (100 * MMC_MS_NS)

/*
 * Returns the time from `*observed_ns`, the last look at the clock, to `now_ns`, but at
 * most MMC_OBSERVED_NS_MAX, and sets `*observed_ns` to `now_ns`.
 */
static inline uint64_t mmc_observe(uint64_t *observed_ns, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - *observed_ns;

	*observed_ns = now_ns;
	return mmc_min_u64(elapsed_ns, MMC_OBSERVED_NS_MAX);
}

/*
 * Returns when to look at the clock again in a wait that ends after `limit_ns`, of
 * which `spent_ns` have passed; MMC_NEVER_NS if the wait has ended.
 */
static inline uint64_t
mmc_observe_deadline(uint64_t observed_ns, uint64_t spent_ns, uint64_t limit_ns)
{
	if (spent_ns >= limit_ns)
		return MMC_NEVER_NS;
	return observed_ns +
	       mmc_min_u64(limit_ns - spent_ns, MMC_OBSERVED_NS_MAX);
}

#endif
