/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of progress: receive, poll the core, carry out its actions. */
#ifndef MMC_ENGINE_PROGRESS_H
#define MMC_ENGINE_PROGRESS_H

#include "engine/state.h"

/*
 * Makes one round of progress for all connected teams: takes in events, polls the
 * streams that are due, and carries out their actions. Returns whether anything
 * happened: then more may be due at once.
 */
bool mmc_engine_progress(struct mmc_engine *engine);

/*
 * Polls those of a team's streams once more whose operations have all ended. What they
 * handed out last was mostly that end, and then nothing is due any more.
 */
void mmc_team_settle(struct mmc_team *team);

/*
 * Returns how long it takes until something is due for one team although nothing
 * arrives: 0 if something is due now, MMC_NEVER_NS if nothing ever is. Each endpoint
 * has a clock of its own, so only a duration can be compared with other clocks.
 */
uint64_t mmc_team_idle_ns(const struct mmc_team *team);

/* Returns the least mmc_team_idle_ns() of all connected teams. */
uint64_t mmc_engine_idle_ns(const struct mmc_engine *engine);

/*
 * Returns for how long data may lie in receive buffers, as long as control messages are
 * taken in at once; 0: not at all.
 */
uint64_t mmc_engine_coalescing_ns(const struct mmc_engine *engine);

/* Returns whether any operation has yet to complete on this rank. */
bool mmc_engine_has_pending(const struct mmc_engine *engine);

/*
 * Prepares endpoints for a sleep on their descriptors: each will signal its next event.
 * With `all` prepares those of all connected teams, else only of those that the
 * responder attends to. The coder will wake the leader, or else the responder. Returns
 * whether an event may have come already; nothing would signal that one.
 */
bool mmc_engine_rearm(struct mmc_engine *engine, bool all);

#endif
