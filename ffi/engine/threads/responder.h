/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: a thread that makes progress while no caller is inside. Thanks to it,
 * a rank that computes answers other ranks' requests about operations it has completed.
 */
#ifndef MMC_ENGINE_THREADS_RESPONDER_H
#define MMC_ENGINE_THREADS_RESPONDER_H

#include "engine/state.h"

/*
 * Opens what the responder sleeps on. Returns 0, or -MMC_EIO with the reason in
 * mmc_last_error().
 */
int mmc_responder_open(struct mmc_engine *engine);

/*
 * Starts the thread unless it runs. It starts only once it has something to do: a rank
 * whose operations a runner carries out, and who waits for each, needs no thread. A
 * stepped engine has none. Returns 0, or -MMC_EIO with the reason in mmc_last_error().
 */
int mmc_responder_start(struct mmc_engine *engine);

/* Ends the thread, if it runs, and waits for its end. */
void mmc_responder_stop(struct mmc_engine *engine);

/* Closes what mmc_responder_open() has opened. Nobody may wake the responder any more. */
void mmc_responder_close(struct mmc_engine *engine);

/*
 * Begins to watch the descriptors of a team that has just connected. Returns 0, or
 * -MMC_EIO if it needs the thread, and that cannot be started.
 */
int mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team);

/* Ceases to watch the descriptors of a team that is about to close. */
void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team);

/* Has the responder sleep through arrivals, since a caller has entered the engine. */
void mmc_responder_stand_by(struct mmc_engine *engine);

/*
 * Has the responder take over from a caller that leaves the engine. With `must_notify`,
 * because someone waits to be notified, it watches all descriptors from now on, and the
 * caller wakes it once the lock is free. Otherwise it first leaves callers a moment to
 * come back.
 */
void mmc_responder_take_over(struct mmc_engine *engine, bool must_notify);

/*
 * Has the responder take over from a caller that does not come back soon. Until then it
 * sleeps through arrivals.
 */
void mmc_responder_watch_over(struct mmc_engine *engine);

/* Wakes the responder, which makes progress if it gets the lock. */
void mmc_responder_wake(struct mmc_engine *engine);

#endif
