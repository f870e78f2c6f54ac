/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/registration.h"

#include "engine/state.h"

bool mmc_team_can_grant(const struct mmc_team *team)
{
	return team->endpoint->read_bytes_max > 0;
}

int mmc_team_register(struct mmc_team *team, const void *memory, size_t nbytes,
		      struct mmc_counters *counters, struct mmc_region *region)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	int rv;

	if (!mmc_team_can_grant(team) && !endpoint->places_by_itself)
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

int mmc_team_grant(struct mmc_team *team, const struct mmc_region *region,
		   const void *memory, size_t nbytes, struct mmc_grant *grant)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint32_t right = (team->options.rank + 1) % team->options.nranks;

	return endpoint->driver->grant_read(endpoint, right, region, memory,
					    nbytes, grant);
}

void mmc_team_revoke(struct mmc_team *team, struct mmc_grant *grant)
{
	team->endpoint->driver->revoke_read(team->endpoint, grant);
}
