/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of progress: receive, poll the core, carry out its actions. */
#ifndef MMC_ENGINE_PROGRESS_H
#define MMC_ENGINE_PROGRESS_H

#include "engine/state.h"

/*
 * Takes in events, polls the streams that are due, and carries out their actions.
 * Returns whether anything happened: more may then be due at once.
 */
bool mmc_engine_progress(struct mmc_engine *engine);

/* Returns when something is due for one team; 0 if one of its streams is stirred. */
uint64_t mmc_team_deadline(const struct mmc_team *team);

/* Returns when something is due for any team; 0 if one of its streams is stirred. */
uint64_t mmc_engine_deadline(const struct mmc_engine *engine);

/* Returns whether any operation has yet to complete on this rank. */
bool mmc_engine_is_moving(const struct mmc_engine *engine);

/*
 * Has the endpoints, all or only those that the responder attends to, signal new events
 * by their descriptors. Returns whether there are events already, which they would not
 * signal.
 */
bool mmc_engine_rearm(struct mmc_engine *engine, bool all);

#endif
