/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of rank 1, and how rank 0 reads it. */
#ifndef MMC_TESTS_VERBS_MEMORY_H
#define MMC_TESTS_VERBS_MEMORY_H

#include "verbs_team.h"

enum { MEMORY_BYTES = 1 << 20 };

static uint8_t *memory; /* of rank 1 */

/* Lets rank 0 read the first `nbytes` of the memory. */
static inline struct mmc_grant grant_memory(struct team *team, size_t nbytes)
{
	struct mmc_grant grant = { .key = 0 };

	if (memory == NULL) {
		memory = aligned_alloc(4096, MEMORY_BYTES);
		for (size_t i = 0; i < MEMORY_BYTES; i++)
			memory[i] = (uint8_t)(i * 13 + (i >> 8));
	}
	succeed(team->endpoints[1]->driver->grant_read(
		team->endpoints[1], 0, NULL, memory, nbytes, &grant));
	CHECK_EQ(grant.address, (uintptr_t)memory);
	return grant;
}

static inline void revoke_memory(struct team *team, struct mmc_grant *grant)
{
	team->endpoints[1]->driver->revoke_read(team->endpoints[1], grant);
}

static inline int start_read(struct team *team,
			     const struct mmc_stretch *stretches,
			     unsigned nstretches, uint64_t cookie)
{
	return team->endpoints[0]->driver->read(team->endpoints[0], 1,
						stretches, nstretches, cookie);
}

static inline struct mmc_stretch piece_of(const struct mmc_grant *grant,
					  uint32_t offset, uint32_t nbytes)
{
	return (struct mmc_stretch){
		.address = grant->address + offset,
		.key = grant->key,
		.nbytes = nbytes,
	};
}

#endif
