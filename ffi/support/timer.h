/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two kinds of timers: a backoff, which repeats ever more rarely, and a wait whose time
 * only counts while the clock is looked at.
 */
#ifndef MMC_SUPPORT_TIMER_H
#define MMC_SUPPORT_TIMER_H

#include "support/bits.h"
#include "support/time.h"

/* The longest interval of a backoff, so that a late answer costs at most this. */
#define MMC_BACKOFF_MAX_NS (20 * MMC_MS_NS)

/* When to ask next; the interval doubles from one question to the next. */
struct mmc_backoff {
	uint64_t at_ns;
	uint64_t interval_ns;
};

static inline void mmc_backoff_stop(struct mmc_backoff *backoff)
{
	backoff->at_ns = MMC_NEVER_NS;
}

static inline void mmc_backoff_start(struct mmc_backoff *backoff,
				     uint64_t now_ns, uint64_t interval_ns)
{
	backoff->at_ns = now_ns + interval_ns;
	backoff->interval_ns = interval_ns;
}

/* Returns whether it is time to ask; if so, sets the time of the next question. */
static inline bool mmc_backoff_due(struct mmc_backoff *backoff, uint64_t now_ns)
{
	if (now_ns < backoff->at_ns)
		return false;
	backoff->interval_ns =
		mmc_min_u64(2 * backoff->interval_ns, MMC_BACKOFF_MAX_NS);
	backoff->at_ns = now_ns + backoff->interval_ns;
	return true;
}

/*
 * The most that one look at the clock adds to a wait. A process that was stopped, or
 * whose machine was suspended, has not waited: it could not hear its peers.
 */
#define MMC_LOOK_NS_MAX (100 * MMC_MS_NS)

/* Returns the observed time since the last look, and makes this the last. */
static inline uint64_t mmc_look(uint64_t *looked_ns, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - *looked_ns;

	*looked_ns = now_ns;
	return mmc_min_u64(elapsed_ns, MMC_LOOK_NS_MAX);
}

/*
 * Returns when to look again in a wait of `limit_ns`, of which `spent_ns` are used up;
 * MMC_NEVER_NS once they all are.
 */
static inline uint64_t mmc_look_deadline(uint64_t looked_ns, uint64_t spent_ns,
					 uint64_t limit_ns)
{
	if (spent_ns >= limit_ns)
		return MMC_NEVER_NS;
	return looked_ns + mmc_min_u64(limit_ns - spent_ns, MMC_LOOK_NS_MAX);
}

#endif
