/* SPDX-License-Identifier: BSD-3-Clause */
/* How many threads are asleep in mmc_lock_await(). */
#ifndef MMC_TESTS_LOCK_WAITERS_H
#define MMC_TESTS_LOCK_WAITERS_H

#include <sched.h>

#include "engine/threads/threads.h"

/* Returns once `n` threads await the lock; the engine's mutex guards their number. */
static inline void await_lock_waiters(struct mmc_engine *engine, unsigned n)
{
	unsigned nawaiting;

	do {
		sched_yield();
		pthread_mutex_lock(&engine->threads->mutex);
		nawaiting = engine->threads->nawaiting;
		pthread_mutex_unlock(&engine->threads->mutex);
	} while (nawaiting != n);
}

#endif
