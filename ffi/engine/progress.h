/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of an engine: receive, let the core think, do what it says. */
#ifndef MMC_ENGINE_PROGRESS_H
#define MMC_ENGINE_PROGRESS_H

#include "engine/state.h"

/*
 * Takes in what is there, polls what is due, does what is wanted. Returns
 * whether anything happened: then more may be due at once.
 */
bool mmc_engine_progress(struct mmc_engine *engine);

/* When something is due for one team. */
uint64_t mmc_team_deadline(const struct mmc_team *team);

/* When something is due if nothing comes: at once if a stream is stirred. */
uint64_t mmc_engine_deadline(const struct mmc_engine *engine);

/* Whether an operation is on its way, not only there to serve others. */
bool mmc_engine_is_moving(const struct mmc_engine *engine);

/*
 * Has the endpoints, all or those that the responder looks after, announce by their
 * descriptors what comes from now on. Returns whether something has come already, which
 * they would not announce.
 */
bool mmc_engine_rearm(struct mmc_engine *engine, bool all);

#endif
