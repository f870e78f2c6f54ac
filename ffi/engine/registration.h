/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration: memory of this rank is made known to the device. Grants: the right of
 * one other rank, the right neighbour, to read a part of it. Both end with what they were
 * made for, whether that has succeeded or failed.
 */
#ifndef MMC_ENGINE_REGISTRATION_H
#define MMC_ENGINE_REGISTRATION_H

#include "core/counters.h"
#include "drivers/driver.h"

struct mmc_team;

/* Returns whether this rank can let another one read its memory. */
bool mmc_team_can_grant(const struct mmc_team *team);

/*
 * Registers the `nbytes` at `memory`, and counts that in `counters`. Returns 0 with
 * `region` written, -MMC_ENODEV if the endpoint cannot register memory, or another
 * negative error.
 */
int mmc_team_register(struct mmc_team *team, const void *memory, size_t nbytes,
		      struct mmc_counters *counters, struct mmc_region *region);

void mmc_team_deregister(struct mmc_team *team, struct mmc_region *region);

/*
 * Lets the right neighbour read the `nbytes` at `memory`, in `region` if that is not
 * NULL; if it is, the grant also registers the memory. Returns 0 with `grant` written, or
 * a negative error. mmc_team_can_grant() holds.
 */
int mmc_team_grant(struct mmc_team *team, const struct mmc_region *region,
		   const void *memory, size_t nbytes, struct mmc_grant *grant);

/* Ends a grant: on return the neighbour can no longer read by it. */
void mmc_team_revoke(struct mmc_team *team, struct mmc_grant *grant);

#endif
