/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress lock: the one thread that holds it owns all of an engine. Waiting
 * threads get it in the order in which they asked.
 */
#ifndef MMC_ENGINE_LOCK_H
#define MMC_ENGINE_LOCK_H

#include "engine/state.h"

/* Takes the lock after all threads that asked before; wakes a holder that sleeps. */
void mmc_lock_take(struct mmc_engine *engine);

/*
 * Takes the lock if it is free and no caller is between two rounds of its loop, about
 * to take it back. Returns whether it did.
 */
bool mmc_lock_try(struct mmc_engine *engine);

/* Gives the lock to the thread that has waited longest, if any waits. */
void mmc_lock_give(struct mmc_engine *engine);

/* Returns to the holder whether another thread waits for the lock. */
bool mmc_lock_is_contended(const struct mmc_engine *engine);

#endif
