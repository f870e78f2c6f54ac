/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks that the device has put in their places by itself: the engine sees neither their
 * headers nor their payloads, only that they have arrived. What the device tells comes from
 * the network as much as a header does, and is checked as well.
 */
#ifndef MMC_ENGINE_ARRIVAL_H
#define MMC_ENGINE_ARRIVAL_H

#include "engine/state.h"

/* Returns the cookie of the events that chunks of this operation have arrived. */
uint64_t mmc_arrival_cookie(const struct mmc_request *request);

/* Handles the event that chunks have arrived. Counts and drops what fits no operation. */
void mmc_team_on_arrived(struct mmc_team *team, const struct mmc_event *event,
			 uint64_t now_ns);

#endif
