/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the operation whose payloads the device places directly (see
 * drivers/placement.h). A team has one such operation at a time. Its result must lie in
 * engine memory: that stays registered, and is not freed while a device may still write
 * to it.
 */
#ifndef MMC_ENGINE_PLACEMENT_H
#define MMC_ENGINE_PLACEMENT_H

#include "engine/state.h"

/*
 * Ends direct placement if its operation has all chunks. Then begins it for the next
 * operation that is suitable, if the driver can place and no operation has it.
 */
void mmc_team_begin_placement(struct mmc_team *team);

/*
 * Ends direct placement if it is for this request. On return either no posted receive
 * aims at the request's memory any more, or the team is marked, so that its engine memory
 * is never freed. With `forget` the driver drops payloads
 * that wait until no receive aims at their places; otherwise their events still follow.
 */
void mmc_request_end_placement(struct mmc_request *request, bool forget);

#endif
