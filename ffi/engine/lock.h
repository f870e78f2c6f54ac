/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress lock: all of an engine belongs to the one thread that holds it. It goes to
 * waiting threads in the order of their asking.
 */
#ifndef MMC_ENGINE_LOCK_H
#define MMC_ENGINE_LOCK_H

#include "engine/state.h"

/* Takes the lock after all who asked before, waking a holder that sleeps. */
void mmc_lock_take(struct mmc_engine *engine);

/*
 * Takes the lock if it is free, and no caller between two turns of its loop will be back
 * for it at once. Returns whether it did.
 */
bool mmc_lock_try(struct mmc_engine *engine);

/* Gives the lock to whoever waits longest, if anybody does. */
void mmc_lock_give(struct mmc_engine *engine);

/* Returns, to the holder, whether another thread waits for the lock. */
bool mmc_lock_is_contended(const struct mmc_engine *engine);

#endif
