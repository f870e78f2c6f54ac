/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the hosts of a simulated network let each other read. Addresses are
 * made up, so that a run does not depend on where memory lies.
 */
#ifndef MMC_DRIVERS_SIM_REGIONS_H
#define MMC_DRIVERS_SIM_REGIONS_H

#include "drivers/driver.h"

struct mmc_sim_registered {
	uint32_t host; /* whose memory it is */
	const uint8_t *memory;
	size_t nbytes;
	bool deregistered;
	bool dead; /* whether its host is off */
};

/* The regions that all hosts ever had. Begins as all zeros. */
struct mmc_sim_regions {
	struct mmc_sim_registered *items; /* indexed by key */
	uint32_t nitems;
	uint32_t capacity;
};

void mmc_sim_regions_free(struct mmc_sim_regions *regions);

/* Adds a region of `host`. Returns 0 with `region` written, or -MMC_ENOMEM. */
int mmc_sim_regions_add(struct mmc_sim_regions *regions, uint32_t host,
			const void *memory, size_t nbytes,
			struct mmc_region *region);

/* Ends the right of other hosts to read `region`. */
void mmc_sim_regions_deregister_memory(struct mmc_sim_regions *regions,
				       const struct mmc_region *region);

/* Makes all memory of `host` unreadable, since that host is off. */
void mmc_sim_regions_die(struct mmc_sim_regions *regions, uint32_t host);

/*
 * Copies to `to` what `stretch`, a part of the memory of `host`, holds now. Returns 0,
 * -MMC_ENOANSWER if that host is off, or -MMC_EIO if it does not let others read there.
 */
int mmc_sim_regions_read(const struct mmc_sim_regions *regions, uint32_t host,
			 const struct mmc_stretch *stretch, uint8_t *to);

#endif
