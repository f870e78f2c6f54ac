/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this rank that others may read. Where nobody reads it any more it is
 * withdrawn; after a failure somebody may, and then it stays until the team
 * closes: withdrawing it would break that rank's connection, which other streams
 * share.
 */
#ifndef MMC_ENGINE_EXPOSURE_H
#define MMC_ENGINE_EXPOSURE_H

#include "core/counters.h"
#include "drivers/driver.h"

struct mmc_team;
struct mmc_grave;

/* Whether the team's endpoint can expose memory at all. */
bool mmc_team_exposes(const struct mmc_team *team);

/* Exposes `nbytes` at `memory`. Returns 0 or a negative error. */
int mmc_team_expose(struct mmc_team *team, const void *memory, size_t nbytes,
		    struct mmc_counters *counters, struct mmc_region *region);

/* Nobody reads it any more. */
void mmc_team_withdraw(struct mmc_team *team, struct mmc_region *region);

/*
 * Somebody may. `memory`, if it is not NULL, is freed when the region ends: at
 * the closing of the team.
 */
void mmc_team_bury(struct mmc_team *team, const struct mmc_region *region,
		   void *memory);

/* Ends what was buried; nothing comes from the endpoint any more. */
void mmc_team_clear_graves(struct mmc_team *team);

#endif
