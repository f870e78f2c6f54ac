/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that rank 1 registers, and how rank 0 reads it. */
#ifndef MMC_TESTS_VERBS_MEMORY_H
#define MMC_TESTS_VERBS_MEMORY_H

#include "verbs_team.h"

enum { MEMORY_BYTES = 1 << 20 };

static uint8_t *memory; /* of rank 1 */

static inline struct mmc_region register_memory(struct team *team,
						size_t nbytes)
{
	struct mmc_region region = { .key = 0 };

	if (memory == NULL) {
		memory = aligned_alloc(4096, MEMORY_BYTES);
		for (size_t i = 0; i < MEMORY_BYTES; i++)
			memory[i] = (uint8_t)(i * 13 + (i >> 8));
	}
	succeed(team->endpoints[1]->driver->register_memory(
		team->endpoints[1], memory, nbytes, &region));
	CHECK_EQ(region.address, (uintptr_t)memory);
	return region;
}

static inline void deregister_memory(struct team *team,
				     struct mmc_region *region)
{
	team->endpoints[1]->driver->deregister_memory(team->endpoints[1],
						      region);
}

static inline int start_read(struct team *team,
			     const struct mmc_stretch *stretches,
			     unsigned nstretches, uint64_t cookie)
{
	return team->endpoints[0]->driver->read(team->endpoints[0], 1,
						stretches, nstretches, cookie);
}

static inline struct mmc_stretch piece_of(const struct mmc_region *region,
					  uint32_t offset, uint32_t nbytes)
{
	return (struct mmc_stretch){
		.address = region->address + offset,
		.key = region->key,
		.nbytes = nbytes,
	};
}

#endif
