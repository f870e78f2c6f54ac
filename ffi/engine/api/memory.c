/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/memory.h"

#include "engine/threads/callers.h"

/* Hands new memory, or NULL, to the engine, and its address to the program. */
static int hand_over(struct mmc_engine *engine, struct mmc_memory *new,
		     void **memory)
{
	int rv = new == NULL ? -MMC_ENOMEM : mmc_engine_enter(engine);

	if (rv != 0) {
		mmc_memory_delete(new);
		return rv;
	}
	mmc_engine_add_memory(engine, new);
	mmc_engine_leave(engine);
	*memory = mmc_memory_bytes(new);
	return 0;
}

int mmc_memory_allocate(struct mmc_engine *engine, size_t nbytes, void **memory)
{
	return hand_over(engine, mmc_memory_new(nbytes), memory);
}

/* Returns whether a runner may use the engine's memory: it needs the file, too. */
static bool has_runner(struct mmc_engine *engine)
{
	bool found = false;

	if (mmc_engine_enter(engine) != 0)
		return false;
	for (const struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		found |= mmc_team_is_remote(team);
	mmc_engine_leave(engine);
	return found;
}

int mmc_memory_map(struct mmc_engine *engine, int fd, size_t nbytes,
		   void **memory)
{
	return hand_over(engine, mmc_memory_of(fd, nbytes, has_runner(engine)),
			 memory);
}

void mmc_memory_free(struct mmc_engine *engine, void *memory)
{
	struct mmc_memory *found;

	if (mmc_engine_enter(engine) != 0)
		return;
	found = mmc_engine_take_memory(engine, memory);
	mmc_engine_leave(engine);
	mmc_memory_delete(found);
}
