/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration: the right of other ranks to read memory of this rank. It ends when no
 * rank reads the memory any more. After a failure nobody knows when that is, so memory
 * then stays registered until the team closes: if a rank read memory that has been
 * deregistered, its connection would break, which other streams share.
 */
#ifndef MMC_ENGINE_REGISTRATION_H
#define MMC_ENGINE_REGISTRATION_H

#include "core/counters.h"
#include "drivers/driver.h"

struct mmc_team;
struct mmc_deferred;

/* Returns whether the team's endpoint can register memory. */
bool mmc_team_can_register(const struct mmc_team *team);

/*
 * Lets other ranks read the `nbytes` at `memory`, and counts that in `counters`.
 * Returns 0 with `region` written, -MMC_ENODEV if the endpoint cannot register memory,
 * or another negative error.
 */
int mmc_team_register(struct mmc_team *team, const void *memory, size_t nbytes,
		      struct mmc_counters *counters, struct mmc_region *region);

/* Deregisters a region that no rank reads any more. */
void mmc_team_deregister(struct mmc_team *team, struct mmc_region *region);

/*
 * Defers the deregistration of a region that a rank may still read, until the team
 * closes. `memory`, if it is not NULL, is then freed.
 */
void mmc_team_deregister_later(struct mmc_team *team,
			       const struct mmc_region *region, void *memory);

/*
 * Deregisters all deferred regions and frees their memory. The team must not be polled
 * any more.
 */
void mmc_team_deregister_deferred(struct mmc_team *team);

#endif
