/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/memory.h"

#include <stdlib.h>

#include "engine/mapping.h"
#include "engine/registration.h"

/* The smallest page of the machines that we know; a device registers whole pages. */
#define PAGE_BYTES 4096

/* One team's registration of a whole memory, kept until either of them ends. */
struct kept_registration {
	struct kept_registration *next; /* that of another team */
	struct mmc_team *team;
	struct mmc_region region;
};

struct mmc_memory {
	struct mmc_memory *next;
	uint8_t *bytes; /* NULL if it must not be freed */
	size_t nbytes;
	bool mapped;			/* from a file */
	int fd;				/* of that file, or -1 */
	struct kept_registration *kept; /* one for each team that uses it */
};

struct mmc_memory *mmc_memory_new(size_t nbytes)
{
	size_t whole_bytes = (nbytes / PAGE_BYTES + 1) * PAGE_BYTES;
	struct mmc_memory *new;

	if (whole_bytes <= nbytes)
		return NULL;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return NULL;
	new->bytes = aligned_alloc(PAGE_BYTES, whole_bytes);
	new->nbytes = whole_bytes;
	new->fd = -1;
	if (new->bytes != NULL)
		return new;
	free(new);
	return NULL;
}

struct mmc_memory *mmc_memory_of(int fd, size_t nbytes, bool shares)
{
	/* No more: beyond the file's last page there is nothing to register. */
	size_t whole_bytes =
		(nbytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	struct mmc_memory *new = calloc(1, sizeof(*new));

	if (new == NULL)
		return NULL;
	new->bytes = mmc_mapping_make(fd, nbytes);
	new->nbytes = whole_bytes;
	new->mapped = true;
	new->fd = shares ? mmc_mapping_keep(fd) : -1;
	if (new->bytes != NULL)
		return new;
	free(new);
	return NULL;
}

void *mmc_memory_bytes(const struct mmc_memory *memory)
{
	return memory->bytes;
}

void mmc_memory_delete(struct mmc_memory *memory)
{
	if (memory == NULL)
		return;
	if (memory->mapped)
		mmc_mapping_end(memory->bytes, memory->nbytes, memory->fd);
	else
		free(memory->bytes);
	free(memory);
}

void mmc_engine_add_memory(struct mmc_engine *engine, struct mmc_memory *memory)
{
	memory->next = engine->memories;
	engine->memories = memory;
}

struct mmc_memory *mmc_engine_take_memory(struct mmc_engine *engine,
					  const void *bytes)
{
	struct mmc_memory **at = &engine->memories;
	struct mmc_memory *found;

	while (*at != NULL && (*at)->bytes != bytes)
		at = &(*at)->next;
	found = *at;
	if (found == NULL)
		return NULL;
	*at = found->next;
	while (found->kept != NULL) {
		struct kept_registration *kept = found->kept;

		found->kept = kept->next;
		/* What was mapped may go: nothing else gets pages that the device holds. */
		if (kept->team->memory_may_be_written && !found->mapped)
			found->bytes = NULL;
		mmc_team_deregister(kept->team, &kept->region);
		free(kept);
	}
	return found;
}

/* Returns the engine memory that all `nbytes` at `address` lie in, or NULL. */
static struct mmc_memory *find(const struct mmc_engine *engine,
			       const void *address, uint64_t nbytes)
{
	for (struct mmc_memory *memory = engine->memories; memory != NULL;
	     memory = memory->next) {
		uintptr_t offset =
			(uintptr_t)address - (uintptr_t)memory->bytes;

		if (offset < memory->nbytes &&
		    nbytes <= memory->nbytes - offset)
			return memory;
	}
	return NULL;
}

/* Registers memory as a file if it has one, and that is what the endpoint can share. */
static int register_for(struct mmc_team *team, const struct mmc_memory *memory,
			struct mmc_counters *counters,
			struct mmc_region *region)
{
	struct mmc_endpoint *endpoint = team->endpoint;

	if (endpoint->driver->share_memory == NULL)
		return mmc_team_register(team, memory->bytes, memory->nbytes,
					 counters, region);
	if (memory->fd < 0)
		return -MMC_ENODEV;
	return endpoint->driver->share_memory(endpoint, memory->fd,
					      memory->nbytes, region);
}

/* Registers the whole memory for the ranks of `team`. Returns NULL if that fails. */
static struct kept_registration *register_whole(struct mmc_team *team,
						struct mmc_memory *memory,
						struct mmc_counters *counters)
{
	struct kept_registration *kept = malloc(sizeof(*kept));

	if (kept == NULL)
		return NULL;
	kept->team = team;
	if (register_for(team, memory, counters, &kept->region) != 0) {
		free(kept);
		return NULL;
	}
	kept->next = memory->kept;
	memory->kept = kept;
	return kept;
}

bool mmc_team_find_region(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_counters *counters,
			  struct mmc_region *found)
{
	struct mmc_memory *memory = find(team->engine, address, nbytes);
	struct kept_registration *kept;

	if (memory == NULL)
		return false;
	kept = memory->kept;
	while (kept != NULL && kept->team != team)
		kept = kept->next;
	if (kept == NULL)
		kept = register_whole(team, memory, counters);
	if (kept == NULL)
		return false;
	*found = kept->region;
	return true;
}

bool mmc_team_find_shared(struct mmc_team *team, const void *address,
			  uint64_t nbytes, struct mmc_region *found,
			  uint64_t *offset_bytes)
{
	const struct mmc_memory *memory = find(team->engine, address, nbytes);

	if (memory == NULL || memory->fd < 0 ||
	    !mmc_team_find_region(team, address, nbytes, &team->counters,
				  found))
		return false;
	*offset_bytes = (uint64_t)((const uint8_t *)address - memory->bytes);
	return true;
}

void mmc_team_forget_memories(struct mmc_team *team)
{
	for (struct mmc_memory *memory = team->engine->memories; memory != NULL;
	     memory = memory->next)
		for (struct kept_registration **at = &memory->kept;
		     *at != NULL;) {
			struct kept_registration *kept = *at;

			if (kept->team != team) {
				at = &kept->next;
				continue;
			}
			*at = kept->next;
			mmc_team_deregister(team, &kept->region);
			free(kept);
		}
}
