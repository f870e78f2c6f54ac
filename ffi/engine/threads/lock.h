/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress lock. The thread that holds it may use all of the engine's state.
 * Threads that wait get the lock in the order in which they asked for it.
 */
#ifndef MMC_ENGINE_THREADS_LOCK_H
#define MMC_ENGINE_THREADS_LOCK_H

#include "engine/state.h"

/* Waits for the lock and takes it. Wakes the holder, in case that sleeps on events. */
void mmc_lock_take(struct mmc_engine *engine);

/*
 * Takes the lock if it is free and no caller leads. A leader gives the lock back now
 * and then, and is about to take it again. Returns whether the lock was taken.
 */
bool mmc_lock_try(struct mmc_engine *engine);

/* Gives the lock to the thread that has waited longest; frees it if none waits. */
void mmc_lock_give(struct mmc_engine *engine);

/*
 * Waits until the lock's holder has given it, or returns at once if it has none. Does not
 * take it, and does not count as waiting for it.
 */
void mmc_lock_await(struct mmc_engine *engine);

/* Returns whether another thread waits for the lock. Only the holder may ask. */
bool mmc_lock_is_contended(const struct mmc_engine *engine);

#endif
