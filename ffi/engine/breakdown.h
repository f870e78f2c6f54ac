/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a team that are broken for good. */
#ifndef MMC_ENGINE_BREAK_H
#define MMC_ENGINE_BREAK_H

#include "engine/state.h"

/*
 * Fails every stream of the team, and tells all ranks, because the connection to a rank
 * or this rank's own device has failed for good. Keeps the driver's error text for the
 * user. Later calls have no effect: the first failure counts.
 */
void mmc_team_break(struct mmc_team *team, const struct mmc_event *event);

/* Sets the calling thread's last error to why the team is broken, or "". */
void mmc_team_explain(const struct mmc_team *team);

#endif
