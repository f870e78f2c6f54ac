/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/registration.h"

#include <stdlib.h>

#include "engine/state.h"

/* A region to deregister when the team closes. */
struct mmc_deferred {
	struct mmc_deferred *next;
	struct mmc_region region;
	void *memory; /* to be freed after that, or NULL */
};

bool mmc_team_can_register(const struct mmc_team *team)
{
	return team->endpoint->read_bytes_max > 0;
}

int mmc_team_register(struct mmc_team *team, const void *memory, size_t nbytes,
		      struct mmc_counters *counters, struct mmc_region *region)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	int rv;

	if (!mmc_team_can_register(team))
		return -MMC_ENODEV;
	rv = endpoint->driver->register_memory(endpoint, memory, nbytes,
					       region);
	if (rv == 0)
		mmc_count(counters, MMC_COUNT_REGISTRATIONS, 1);
	return rv;
}

void mmc_team_deregister(struct mmc_team *team, struct mmc_region *region)
{
	team->endpoint->driver->deregister_memory(team->endpoint, region);
}

void mmc_team_deregister_later(struct mmc_team *team,
			       const struct mmc_region *region, void *memory)
{
	struct mmc_deferred *deferred = malloc(sizeof(*deferred));

	/* Not to deregister it at all is safe, too: the region is merely leaked. */
	if (deferred == NULL)
		return;
	*deferred = (struct mmc_deferred){
		.next = team->deferred,
		.region = *region,
		.memory = memory,
	};
	team->deferred = deferred;
}

void mmc_team_deregister_deferred(struct mmc_team *team)
{
	while (team->deferred != NULL) {
		struct mmc_deferred *deferred = team->deferred;

		team->deferred = deferred->next;
		mmc_team_deregister(team, &deferred->region);
		free(deferred->memory);
		free(deferred);
	}
}
