/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the hosts of a simulated network let each other read, each part of it
 * one other host. Addresses are made up, so that a run does not depend on where memory
 * lies.
 */
#ifndef MMC_DRIVERS_SIM_REGIONS_H
#define MMC_DRIVERS_SIM_REGIONS_H

#include "drivers/driver.h"

struct mmc_sim_granted {
	uint32_t host;	 /* whose memory it is */
	uint32_t reader; /* the host that may read it */
	const uint8_t *memory;
	size_t nbytes;
	bool registers; /* the grant has registered the memory, too */
	bool revoked;
	bool dead; /* whether its host is off */
};

/* All grants that there ever were. Begins as all zeros. */
struct mmc_sim_regions {
	struct mmc_sim_granted *items; /* indexed by key */
	uint32_t nitems;
	uint32_t capacity;
};

void mmc_sim_regions_free(struct mmc_sim_regions *regions);

/* Adds what is granted. Returns 0 with `grant` written, or -MMC_ENOMEM. */
int mmc_sim_regions_grant(struct mmc_sim_regions *regions,
			  const struct mmc_sim_granted *granted,
			  struct mmc_grant *grant);

/* Ends a grant. Returns what was granted. */
struct mmc_sim_granted mmc_sim_regions_revoke(struct mmc_sim_regions *regions,
					      const struct mmc_grant *grant);

/* Returns whether any byte of the `nbytes` at `memory` is granted to any host. */
bool mmc_sim_regions_are_granted(const struct mmc_sim_regions *regions,
				 const void *memory, size_t nbytes);

/* Makes all memory of `host` unreadable, since that host is off. */
void mmc_sim_regions_die(struct mmc_sim_regions *regions, uint32_t host);

/*
 * Copies to `to` what `stretch`, a part of the memory of `host`, holds now. Returns 0,
 * -MMC_ENOANSWER if that host is off, or -MMC_EIO if it does not let `reader` read there.
 */
int mmc_sim_regions_read(const struct mmc_sim_regions *regions, uint32_t host,
			 uint32_t reader, const struct mmc_stretch *stretch,
			 uint8_t *to);

#endif
