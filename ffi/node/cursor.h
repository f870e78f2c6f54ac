/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cursor in shared memory: how many pieces a member is done with. One member moves it,
 * others sleep on it. It wraps round, so cursors are compared by their distance.
 */
#ifndef MMC_NODE_CURSOR_H
#define MMC_NODE_CURSOR_H

#include <stdbool.h>

#include "support/futex.h"

struct mmc_cursor {
	_Atomic uint32_t npieces;
	_Atomic uint32_t nsleepers;
};

/* Returns whether the number `a` lies behind `b`, which is less than 2^31 away. */
static inline bool mmc_cursor_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Returns the cursor's number; what its owner wrote before is then visible. */
static inline uint32_t mmc_cursor_get(struct mmc_cursor *cursor)
{
	return atomic_load_explicit(&cursor->npieces, memory_order_acquire);
}

/*
 * Moves the cursor, and wakes who sleeps on it. Either the owner sees the sleeper, or
 * the sleeper sees the new number: both accesses are sequentially consistent.
 */
static inline void mmc_cursor_set(struct mmc_cursor *cursor, uint32_t npieces)
{
	atomic_store(&cursor->npieces, npieces);
	if (atomic_load(&cursor->nsleepers) > 0)
		mmc_futex_wake(&cursor->npieces);
}

/* Sleeps for at most `limit_ns` while the cursor stands at `npieces`. */
static inline void mmc_cursor_sleep(struct mmc_cursor *cursor, uint32_t npieces,
				    uint64_t limit_ns)
{
	atomic_fetch_add(&cursor->nsleepers, 1);
	if (atomic_load(&cursor->npieces) == npieces)
		mmc_futex_wait(&cursor->npieces, npieces, limit_ns);
	atomic_fetch_sub(&cursor->nsleepers, 1);
}

#endif
