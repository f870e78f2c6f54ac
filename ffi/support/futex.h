/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a word of memory that processes share, until another one changes it. */
#ifndef MMC_SUPPORT_FUTEX_H
#define MMC_SUPPORT_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/clock.h"

/*
 * Sleeps while `*word` is `value`, for at most `limit_ns`, until mmc_futex_wake(). May
 * return early for no reason, as after a signal.
 */
static inline void mmc_futex_wait(_Atomic uint32_t *word, uint32_t value,
				  uint64_t limit_ns)
{
	struct timespec limit = mmc_clock_timespec(limit_ns);

	syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

/* Wakes all threads of all processes that sleep on `word`. */
static inline void mmc_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
