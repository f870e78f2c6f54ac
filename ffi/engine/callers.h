/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers of the library inside an engine. One that waits for its operation moves
 * everybody's; others that wait follow it.
 */
#ifndef MMC_ENGINE_CALLERS_H
#define MMC_ENGINE_CALLERS_H

#include "engine/state.h"

/*
 * Takes the progress lock, waiting until its holder gives it. Returns 0, or
 * -MMC_EFORKED in a child of the process that created the engine.
 */
int mmc_engine_enter(struct mmc_engine *engine);

/* Gives the lock, and leaves to the responder what is still to be done. */
void mmc_engine_leave(struct mmc_engine *engine);

/*
 * Holding the lock, moves everything on until `request` is over or `until_ns` is
 * there; where another caller does so already it need only wait.
 */
void mmc_engine_run(struct mmc_engine *engine,
		    const struct mmc_request *request, uint64_t until_ns);

/*
 * Without the lock: while another caller moves everything on, waits until
 * `request` is over or `until_ns` is there, and returns true then. Returns false
 * if nobody does so (any more): then mmc_engine_run() is to be called.
 */
bool mmc_engine_follow(struct mmc_engine *engine,
		       const struct mmc_request *request, uint64_t until_ns);

#endif
