/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/memory.h"

#include "engine/callers.h"

int mmc_memory_allocate(struct mmc_engine *engine, size_t nbytes, void **memory)
{
	struct mmc_memory *new = mmc_memory_new(nbytes);
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

void mmc_memory_free(struct mmc_engine *engine, void *memory)
{
	struct mmc_memory *found;

	if (mmc_engine_enter(engine) != 0)
		return;
	found = mmc_engine_take_memory(engine, memory);
	mmc_engine_leave(engine);
	mmc_memory_delete(found);
}
