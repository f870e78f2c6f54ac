/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posted receives of a simulated host's subgroups, if it has such: each
 * arrival takes the next, and lies at once where that says.
 */
#ifndef MMC_DRIVERS_SIM_COVERING_H
#define MMC_DRIVERS_SIM_COVERING_H

#include "drivers/cover.h"
#include "drivers/sim/network.h"

struct mmc_sim_endpoint;

/* Arrivals and receives of one subgroup, counted since the beginning. */
struct mmc_sim_ring {
	uint64_t nposted;
	uint64_t narrived;
	uint64_t npolled;
};

struct mmc_sim_covering {
	struct mmc_covers covers;
	struct mmc_sim_ring *rings;
	uint8_t *staging;
	uint32_t nplugs; /* that have come and are not polled */
};

/* Returns 0 or -MMC_ENOMEM; destroy in any case. */
int mmc_sim_covering_init(struct mmc_sim_endpoint *endpoint);

void mmc_sim_covering_destroy(struct mmc_sim_endpoint *endpoint);

/* Whether a receive is there for a frame of the subgroup, or a plug (NULL). */
bool mmc_sim_covering_arrive(struct mmc_sim_endpoint *endpoint,
			     uint32_t subgroup, const struct mmc_frame *frame);

/* Where the payload of the frame that is polled lies; NULL: in the frame. */
const uint8_t *mmc_sim_covering_poll(struct mmc_sim_endpoint *endpoint,
				     uint32_t subgroup,
				     const struct mmc_frame *frame);

/* Posts again what the last poll has taken. */
void mmc_sim_covering_post(struct mmc_sim_endpoint *endpoint);

/* How many plugs the subgroup is to get now; there are receives for them. */
uint32_t mmc_sim_covering_plugs(struct mmc_sim_endpoint *endpoint,
				uint32_t subgroup);

/* For struct mmc_driver. */
int mmc_sim_cover(struct mmc_endpoint *endpoint, const struct mmc_cover *plan);
int mmc_sim_uncover(struct mmc_endpoint *endpoint, bool forget);

#endif
