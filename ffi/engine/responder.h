/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that does what is due when no caller is inside, so that a rank that
 * computes still answers about its past.
 */
#ifndef MMC_ENGINE_RESPONDER_H
#define MMC_ENGINE_RESPONDER_H

#include "engine/state.h"

/* Starts and stops the responder thread. */
int mmc_responder_start(struct mmc_engine *engine);
void mmc_responder_stop(struct mmc_engine *engine);

/* A connected team's descriptors are watched, or no longer. */
void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team);
void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team);

/* A caller is inside: the responder sleeps through what comes. */
void mmc_responder_stand_by(struct mmc_engine *engine);

/*
 * The caller leaves. Unless `expects`, that requests will notify of their ends, callers
 * have a moment to come back before the responder does what is due.
 */
void mmc_responder_take_over(struct mmc_engine *engine, bool expects);

/* Has the responder look as soon as it can. */
void mmc_responder_call(struct mmc_engine *engine);

#endif
