/* SPDX-License-Identifier: BSD-3-Clause */
/* How a team breaks down: a connection, or this rank's device, has failed for good. */
#ifndef MMC_ENGINE_BREAKDOWN_H
#define MMC_ENGINE_BREAKDOWN_H

#include "engine/state.h"

/*
 * Poisons every stream of the team, so that all ranks fail. `event`, of the kind
 * MMC_EVENT_BROKEN, says to which rank the connection is broken, or that this rank's
 * device has failed. Keeps the calling thread's last error, which the driver has set,
 * as the team's reason. Only the first call has an effect.
 */
void mmc_team_break_down(struct mmc_team *team, const struct mmc_event *event);

/*
 * Sets the calling thread's last error to the reason of the team's breakdown, or to ""
 * if the team has not broken down.
 */
void mmc_team_set_last_error(const struct mmc_team *team);

#endif
