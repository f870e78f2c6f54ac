/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notification of ends: who waits for whichever request ends next sleeps in
 * mmc_engine_await(), while the responder or other callers move the engine.
 */
#ifndef MMC_ENGINE_NOTIFY_H
#define MMC_ENGINE_NOTIFY_H

#include "engine/state.h"

/* A request whose operation notifies has started. */
void mmc_engine_expect(struct mmc_engine *engine);

/* It has ended, and may be asked for its outcome. */
void mmc_engine_notify(struct mmc_engine *engine);

/* Whether any is in flight: nobody need be inside to move it on. */
static inline bool mmc_engine_expects(const struct mmc_engine *engine)
{
	return engine->nexpected > 0;
}

#endif
