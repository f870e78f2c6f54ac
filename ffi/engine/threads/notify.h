/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifications. A thread that waits for the end of any request, and not of a certain
 * one, sleeps in mmc_engine_await(). The requests whose ends it wants to learn of are
 * marked with `notifies`; the responder makes progress for them.
 */
#ifndef MMC_ENGINE_THREADS_NOTIFY_H
#define MMC_ENGINE_THREADS_NOTIFY_H

#include "engine/state.h"

/* Records that a request with `notifies` has started. */
void mmc_engine_expect_notification(struct mmc_engine *engine);

/*
 * Records that a request with `notifies` has ended, well or not, and wakes the threads
 * in mmc_engine_await().
 */
void mmc_engine_notify(struct mmc_engine *engine);

/* Wakes the threads in mmc_engine_await() although no request has ended. */
void mmc_engine_tell(struct mmc_engine *engine);

/*
 * Returns whether a request with `notifies` is in flight: then no caller need come back
 * for it, and the responder has to make progress at once.
 */
static inline bool mmc_engine_must_notify(const struct mmc_engine *engine)
{
	return engine->nexpected > 0;
}

#endif
