/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that belongs to an engine: a team registers it when it is first used there
 * and keeps it so, which no other memory allows. That may be freed and mapped
 * anew behind our back.
 */
#ifndef MMC_ENGINE_MEMORY_H
#define MMC_ENGINE_MEMORY_H

#include "engine/state.h"

/*
 * Finds where others read `nbytes` at `address`, registering it if need be. False
 * if that is not memory of the engine, or cannot be registered.
 */
bool mmc_team_find_region(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_counters *counters,
			  struct mmc_region *found);

/* The team is about to close: none of its regions is kept any more. */
void mmc_team_forget_memories(struct mmc_team *team);

#endif
