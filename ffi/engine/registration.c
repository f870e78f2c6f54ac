/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/registration.h"

#include <stdlib.h>

#include "engine/state.h"

struct mmc_grave {
	struct mmc_grave *next;
	struct mmc_region region;
	void *memory;
};

bool mmc_team_exposes(const struct mmc_team *team)
{
	return team->endpoint->read_bytes_max > 0;
}

int mmc_team_expose(struct mmc_team *team, const void *memory, size_t nbytes,
		    struct mmc_counters *counters, struct mmc_region *region)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	int rv;

	if (!mmc_team_exposes(team))
		return -MMC_ENODEV;
	rv = endpoint->driver->expose(endpoint, memory, nbytes, region);
	if (rv == 0)
		mmc_count(counters, MMC_COUNT_REGISTRATIONS, 1);
	return rv;
}

void mmc_team_withdraw(struct mmc_team *team, struct mmc_region *region)
{
	team->endpoint->driver->withdraw(team->endpoint, region);
}

void mmc_team_bury(struct mmc_team *team, const struct mmc_region *region,
		   void *memory)
{
	struct mmc_grave *grave = malloc(sizeof(*grave));

	/* Without memory for it, it is never withdrawn: that harms nobody. */
	if (grave == NULL)
		return;
	*grave = (struct mmc_grave){
		.next = team->graves,
		.region = *region,
		.memory = memory,
	};
	team->graves = grave;
}

void mmc_team_clear_graves(struct mmc_team *team)
{
	while (team->graves != NULL) {
		struct mmc_grave *grave = team->graves;

		team->graves = grave->next;
		mmc_team_withdraw(team, &grave->region);
		free(grave->memory);
		free(grave);
	}
}
