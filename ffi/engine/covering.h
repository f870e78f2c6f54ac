/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving chunks right in their places (drivers/cover.h): of one operation of
 * a team at a time, in memory of the engine. That is registered anyway, and not
 * freed under a device that does not let go of it.
 */
#ifndef MMC_ENGINE_COVERING_H
#define MMC_ENGINE_COVERING_H

#include "engine/state.h"

/* Which subgroup carries a chunk with zero-copy receive. */
uint32_t mmc_request_subgroup(const struct mmc_request *request,
			      uint32_t chunk);

/* Ends what is over, and covers the next operation that can be. */
void mmc_team_cover(struct mmc_team *team);

/*
 * No receive names the request's memory any more on return, or the team has
 * failed. With `forget` its operation is not told of placements that have waited
 * for that.
 */
void mmc_request_uncover(struct mmc_request *request, bool forget);

#endif
