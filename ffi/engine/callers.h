/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who moves the engine. A caller that waits for its operation moves everybody's;
 * when nobody is inside, the responder thread does what is due, so that a rank
 * that computes still answers about its past.
 */
#ifndef MMC_ENGINE_CALLERS_H
#define MMC_ENGINE_CALLERS_H

#include "engine/state.h"

/*
 * Becomes the owner, waiting for the present one to leave. Returns 0, or
 * -MMC_EFORKED in a child of the process that created the engine.
 */
int mmc_engine_enter(struct mmc_engine *engine);
void mmc_engine_leave(struct mmc_engine *engine);

/* The clock of what follows. */
uint64_t mmc_engine_clock_ns(void);

/*
 * As the owner, moves everything on until `request` is over or `until_ns` is
 * there; where another caller does so already it need only wait.
 */
void mmc_engine_run(struct mmc_engine *engine,
		    const struct mmc_request *request, uint64_t until_ns);

/*
 * Not as the owner: while another caller moves everything on, waits until
 * `request` is over or `until_ns` is there, and returns true then. Returns false
 * if nobody does so (any more): then mmc_engine_run() is to be called.
 */
bool mmc_engine_follow(struct mmc_engine *engine,
		       const struct mmc_request *request, uint64_t until_ns);

/* Starts and stops the responder thread. */
int mmc_responder_start(struct mmc_engine *engine);
void mmc_responder_stop(struct mmc_engine *engine);

/* A connected team's descriptors are watched, or no longer. */
void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team);
void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team);

#endif
