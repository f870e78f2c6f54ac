/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers inside an engine. A caller that waits for its operation leads: it makes
 * progress for all operations. Others that wait meanwhile follow it.
 */
#ifndef MMC_ENGINE_CALLERS_H
#define MMC_ENGINE_CALLERS_H

#include "engine/state.h"

/*
 * Takes the progress lock, waiting for its holder to give it. Returns 0, or
 * -MMC_EFORKED in a child of the process that created the engine.
 */
int mmc_engine_enter(struct mmc_engine *engine);

/* Gives the lock, and leaves what is still due to the responder. */
void mmc_engine_leave(struct mmc_engine *engine);

/*
 * Makes progress until `request` completes or `until_ns` is reached; if another caller
 * does so already, follows it. The caller holds the lock.
 */
void mmc_engine_run(struct mmc_engine *engine,
		    const struct mmc_request *request, uint64_t until_ns);

/*
 * Waits while another caller makes progress. Returns true once `request` has completed
 * or `until_ns` is reached, and false if no caller makes progress any more:
 * mmc_engine_run() is then to be called. The caller does not hold the lock.
 */
bool mmc_engine_follow(struct mmc_engine *engine,
		       const struct mmc_request *request, uint64_t until_ns);

#endif
