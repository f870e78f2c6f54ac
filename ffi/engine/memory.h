/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine memory: what mmc_memory_allocate() and mmc_memory_map() give to a program. A
 * team registers it when an operation first uses it, and keeps the registration. A program's other memory
 * cannot stay registered, since the library would not learn that the program frees it.
 */
#ifndef MMC_ENGINE_MEMORY_H
#define MMC_ENGINE_MEMORY_H

#include "engine/state.h"

/*
 * Returns new memory of at least `nbytes`, which belongs to no engine yet, or NULL if
 * there is not enough.
 */
struct mmc_memory *mmc_memory_new(size_t nbytes);

/*
 * Returns memory which is that of the file `fd`, at least `nbytes` of it, and belongs to
 * no engine yet. It keeps a descriptor of the file if `shares`. Returns NULL, with the reason in mmc_last_error(), if it cannot be
 * mapped.
 */
struct mmc_memory *mmc_memory_of(int fd, size_t nbytes, bool shares);

/* Returns the memory's first byte, at which a page begins. */
void *mmc_memory_bytes(const struct mmc_memory *memory);

/* Frees memory that belongs to no engine; NULL is allowed. */
void mmc_memory_delete(struct mmc_memory *memory);

/* Makes `memory` belong to the engine, so that teams may register it. */
void mmc_engine_add_memory(struct mmc_engine *engine,
			   struct mmc_memory *memory);

/*
 * Removes the memory that begins at `bytes` from the engine, and ends its
 * registrations. What a device may still write to is leaked. Returns the memory, for the caller to delete, or NULL if the engine
 * has none there.
 */
struct mmc_memory *mmc_engine_take_memory(struct mmc_engine *engine,
					  const void *bytes);

/*
 * Writes to `*found` as what the memory is registered in which the `nbytes` at `address`
 * lie. Registers it first, if the team has not done so, and counts that in `counters`.
 * Returns false if it is not the engine's memory or cannot be registered.
 */
bool mmc_team_find_region(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_counters *counters,
			  struct mmc_region *found);

/*
 * Writes to `*found` as what the file is registered in whose mapping the `nbytes` at
 * `address` lie, and to `*offset_bytes` where. Registers it first, if the team has not
 * done so. Returns false if it is no such memory, or cannot be registered.
 */
bool mmc_team_find_shared(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_region *found,
			  uint64_t *offset_bytes);

/* Ends all of a team's registrations of engine memory, before the team closes. */
void mmc_team_forget_memories(struct mmc_team *team);

#endif
