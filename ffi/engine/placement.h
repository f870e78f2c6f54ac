/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy receive (drivers/placement.h): for one operation of a team at a time, into
 * engine memory, which is registered anyway, and is not freed while a device may still
 * write to it.
 */
#ifndef MMC_ENGINE_PLACEMENT_H
#define MMC_ENGINE_PLACEMENT_H

#include "engine/state.h"

/* Returns the subgroup that carries a chunk with zero-copy receive. */
uint32_t mmc_request_subgroup(const struct mmc_request *request,
			      uint32_t chunk);

/*
 * Stops covering an operation that has all its chunks, and covers the next that allows
 * it.
 */
void mmc_team_begin_placement(struct mmc_team *team);

/*
 * Stops covering a request. On return no posted receive targets its memory, or the team
 * is marked as failed. With `forget` the operation is not told of placements that
 * covering has delayed.
 */
void mmc_request_end_placement(struct mmc_request *request, bool forget);

#endif
