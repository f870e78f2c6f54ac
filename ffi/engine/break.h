/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of a team that is broken for good. */
#ifndef MMC_ENGINE_BREAK_H
#define MMC_ENGINE_BREAK_H

#include "engine/state.h"

/*
 * Nothing reaches or leaves a peer any more, or the own device has failed: every
 * stream of the team fails, because of that rank, and tells all. What the driver
 * said of it is kept for the user.
 */
void mmc_team_break(struct mmc_team *team, const struct mmc_event *event);

/* Repeats, as the calling thread's last error, why a team is broken, or "". */
void mmc_team_explain(const struct mmc_team *team);

#endif
