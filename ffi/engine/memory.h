/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that belongs to an engine. A team registers such memory at its first use and
 * keeps it registered. Other memory must not stay registered: it may be freed and
 * mapped anew without the library's knowledge.
 */
#ifndef MMC_ENGINE_MEMORY_H
#define MMC_ENGINE_MEMORY_H

#include "engine/state.h"

/* Returns new memory of at least `nbytes` that belongs to no engine yet, or NULL. */
struct mmc_memory *mmc_memory_new(size_t nbytes);

/* Returns the first byte, which begins a page. */
void *mmc_memory_bytes(const struct mmc_memory *memory);

/* Frees memory that belongs to no engine; NULL is allowed. */
void mmc_memory_delete(struct mmc_memory *memory);

void mmc_engine_add_memory(struct mmc_engine *engine,
			   struct mmc_memory *memory);

/*
 * Removes the memory that begins at `bytes` from the engine, and ends its
 * registrations. Returns NULL if the engine has no such memory.
 */
struct mmc_memory *mmc_engine_take_memory(struct mmc_engine *engine,
					  const void *bytes);

/*
 * Finds where other ranks read `nbytes` at `address`, registering the memory if it is
 * not registered yet. Returns false if it is not memory of the engine, or cannot be
 * registered.
 */
bool mmc_team_find_region(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_counters *counters,
			  struct mmc_region *found);

/* Ends a team's registrations of engine memory: the team is about to close. */
void mmc_team_forget_memories(struct mmc_team *team);

#endif
