/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/regions.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 64 };

/* Returns the made-up address of a grant. Grants lie a terabyte apart. */
static uint64_t address_of(uint32_t key)
{
	return ((uint64_t)key + 1) << 40;
}

void mmc_sim_regions_free(struct mmc_sim_regions *regions)
{
	free(regions->items);
	*regions = (struct mmc_sim_regions){ 0 };
}

static int reserve(struct mmc_sim_regions *regions)
{
	uint32_t capacity = regions->capacity ? 2 * regions->capacity
					      : CAPACITY_MIN;
	struct mmc_sim_granted *items;

	if (regions->nitems < regions->capacity)
		return 0;
	items = realloc(regions->items, capacity * sizeof(*items));
	if (!items)
		return -MMC_ENOMEM;
	regions->items = items;
	regions->capacity = capacity;
	return 0;
}

int mmc_sim_regions_grant(struct mmc_sim_regions *regions,
			  const struct mmc_sim_granted *granted,
			  struct mmc_grant *grant)
{
	uint32_t key = regions->nitems;

	if (reserve(regions) < 0)
		return -MMC_ENOMEM;
	regions->items[regions->nitems++] = *granted;
	*grant = (struct mmc_grant){
		.address = address_of(key),
		.key = key,
	};
	return 0;
}

struct mmc_sim_granted mmc_sim_regions_revoke(struct mmc_sim_regions *regions,
					      const struct mmc_grant *grant)
{
	struct mmc_sim_granted *item = &regions->items[grant->key];

	item->revoked = true;
	return *item;
}

bool mmc_sim_regions_are_granted(const struct mmc_sim_regions *regions,
				 const void *memory, size_t nbytes)
{
	const uint8_t *begin = memory;

	for (uint32_t i = 0; i < regions->nitems; i++) {
		const struct mmc_sim_granted *item = &regions->items[i];

		if (!item->revoked && begin < item->memory + item->nbytes &&
		    item->memory < begin + nbytes)
			return true;
	}
	return false;
}

void mmc_sim_regions_die(struct mmc_sim_regions *regions, uint32_t host)
{
	for (uint32_t i = 0; i < regions->nitems; i++)
		if (regions->items[i].host == host)
			regions->items[i].dead = true;
}

int mmc_sim_regions_read(const struct mmc_sim_regions *regions, uint32_t host,
			 uint32_t reader, const struct mmc_stretch *stretch,
			 uint8_t *to)
{
	const struct mmc_sim_granted *item;
	uint64_t offset = stretch->address - address_of(stretch->key);

	if (stretch->key >= regions->nitems)
		return -MMC_EIO;
	item = &regions->items[stretch->key];
	if (item->host != host || item->reader != reader || item->revoked ||
	    offset > item->nbytes || stretch->nbytes > item->nbytes - offset)
		return -MMC_EIO;
	if (item->dead)
		return -MMC_ENOANSWER;
	memcpy(to, item->memory + offset, stretch->nbytes);
	return 0;
}
