/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this rank that other ranks may read. It is deregistered once no rank reads
 * it any more. After a failure a rank may still read it, and it stays registered until
 * the team closes: deregistering would break that rank's connection, which other
 * streams share.
 */
#ifndef MMC_ENGINE_REGISTRATION_H
#define MMC_ENGINE_REGISTRATION_H

#include "core/counters.h"
#include "drivers/driver.h"

struct mmc_team;
struct mmc_deferred;

/* Returns whether the team's endpoint can register memory. */
bool mmc_team_registers(const struct mmc_team *team);

/* Registers `nbytes` at `memory`. Returns 0 or a negative error. */
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
 * Deregisters deferred regions and frees their memory. The team is not polled any more.
 */
void mmc_team_deregister_deferred(struct mmc_team *team);

#endif
