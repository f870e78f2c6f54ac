/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this rank that others may read. Where nobody reads it any more it is
 * deregistered; after a failure somebody may, and then it stays until the team
 * closes: deregistering it would break that rank's connection, which other streams
 * share.
 */
#ifndef MMC_ENGINE_REGISTRATION_H
#define MMC_ENGINE_REGISTRATION_H

#include "core/counters.h"
#include "drivers/driver.h"

struct mmc_team;
struct mmc_deferred;

/* Whether the team's endpoint can register memory at all. */
bool mmc_team_registers(const struct mmc_team *team);

/* Registers `nbytes` at `memory`. Returns 0 or a negative error. */
int mmc_team_register(struct mmc_team *team, const void *memory, size_t nbytes,
		      struct mmc_counters *counters, struct mmc_region *region);

/* Nobody reads it any more. */
void mmc_team_deregister(struct mmc_team *team, struct mmc_region *region);

/*
 * Somebody may. `memory`, if it is not NULL, is freed when the region ends: at
 * the closing of the team.
 */
void mmc_team_deregister_later(struct mmc_team *team,
			       const struct mmc_region *region, void *memory);

/* Deregisters what was deferred: nothing comes from the endpoint any more. */
void mmc_team_deregister_deferred(struct mmc_team *team);

#endif
