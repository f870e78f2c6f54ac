/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct placement (drivers/placement.h) of one operation of a team at a time, into
 * engine memory. Such memory is registered anyway, and is not freed while a device may
 * still write to it.
 */
#ifndef MMC_ENGINE_PLACEMENT_H
#define MMC_ENGINE_PLACEMENT_H

#include "engine/state.h"

/*
 * Ends direct placement of an operation that has all its chunks, and begins that of the
 * next operation that allows it.
 */
void mmc_team_begin_placement(struct mmc_team *team);

/*
 * Ends direct placement of a request. On return no posted receive aims at its memory,
 * or the team is marked as failed. With `forget` the operation is not told of payloads
 * that had to wait for a receive.
 */
void mmc_request_end_placement(struct mmc_request *request, bool forget);

#endif
