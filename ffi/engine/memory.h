/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that belongs to an engine: a team registers it when it is first used there
 * and keeps it so, which no other memory allows. That may be freed and mapped
 * anew behind our back.
 */
#ifndef MMC_ENGINE_MEMORY_H
#define MMC_ENGINE_MEMORY_H

#include "engine/state.h"

/* Returns new memory of at least `nbytes`, which no engine has yet, or NULL. */
struct mmc_memory *mmc_memory_new(size_t nbytes);

/* Where it begins: at a page. */
void *mmc_memory_bytes(const struct mmc_memory *memory);

/* Frees memory that no engine has, if not NULL. */
void mmc_memory_delete(struct mmc_memory *memory);

void mmc_engine_add_memory(struct mmc_engine *engine,
			   struct mmc_memory *memory);

/*
 * Takes the memory that begins at `bytes` out of the engine, and ends its
 * registrations. Returns NULL if the engine has no such memory.
 */
struct mmc_memory *mmc_engine_take_memory(struct mmc_engine *engine,
					  const void *bytes);

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
