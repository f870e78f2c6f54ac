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

int mmc_memory_map(struct mmc_engine *engine, int fd, size_t nbytes,
		   void **memory)
{
	return hand_over(engine, mmc_memory_of(fd, nbytes, engine->nremote > 0),
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
