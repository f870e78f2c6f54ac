/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifications of ended operations. A thread that waits for any request to end sleeps
 * in mmc_engine_await(), while the responder or other callers make progress.
 */
#ifndef MMC_ENGINE_NOTIFY_H
#define MMC_ENGINE_NOTIFY_H

#include "engine/state.h"

/* Records that a request whose operation notifies has started. */
void mmc_engine_expect(struct mmc_engine *engine);

/* Records that a request whose operation notifies has ended, with an outcome. */
void mmc_engine_notify(struct mmc_engine *engine);

/* Returns whether a request that notifies is in flight: it needs no caller inside. */
static inline bool mmc_engine_expects(const struct mmc_engine *engine)
{
	return engine->nexpected > 0;
}

#endif
