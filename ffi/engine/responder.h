/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: a thread that does what is due while no caller is inside, so that a
 * rank that computes still answers about operations it has completed.
 */
#ifndef MMC_ENGINE_RESPONDER_H
#define MMC_ENGINE_RESPONDER_H

#include "engine/state.h"

/*
 * Start and stop the responder thread. Starting returns 0, or -MMC_EIO with the reason.
 */
int mmc_responder_start(struct mmc_engine *engine);
void mmc_responder_stop(struct mmc_engine *engine);

/* Begin and cease to watch a connected team's descriptors. */
void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team);
void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team);

/* Has the responder sleep through arrivals: a caller is inside. */
void mmc_responder_stand_by(struct mmc_engine *engine);

/*
 * Has the responder take over from a caller that leaves. Unless `expects`, which says
 * that requests in flight notify of their ends, callers have a moment to come back
 * first.
 */
void mmc_responder_take_over(struct mmc_engine *engine, bool expects);

/* Has the responder make progress as soon as it can. */
void mmc_responder_call(struct mmc_engine *engine);

#endif
