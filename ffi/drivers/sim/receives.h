/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posted receives of a simulated host's subgroups, if it has any. Each arrival
 * takes the next receive, and its payload is at once where that receive puts it.
 */
#ifndef MMC_DRIVERS_SIM_RECEIVES_H
#define MMC_DRIVERS_SIM_RECEIVES_H

#include "drivers/placement.h"
#include "drivers/sim/network.h"

struct mmc_sim_endpoint;

/* Arrivals and receives of one subgroup, counted since the beginning. */
struct mmc_sim_ring {
	uint64_t nposted;
	uint64_t narrived;
	uint64_t npolled;
};

struct mmc_sim_receives {
	struct mmc_placement placement;
	struct mmc_sim_ring *rings;
	uint8_t *staging;
	uint32_t nplugs; /* arrived, not yet polled */
};

/*
 * Returns 0 or -MMC_ENOMEM; mmc_sim_receives_destroy() must be called in either case.
 */
int mmc_sim_receives_init(struct mmc_sim_endpoint *endpoint);

void mmc_sim_receives_destroy(struct mmc_sim_endpoint *endpoint);

/*
 * Takes a receive of the subgroup for a frame, or for a plug (NULL). Returns whether
 * there was one.
 */
bool mmc_sim_receives_arrive(struct mmc_sim_endpoint *endpoint,
			     uint32_t subgroup, const struct mmc_frame *frame);

/*
 * Completes the receive of a frame, or of a plug (NULL), that is polled. Returns where
 * the payload lies; NULL: in the frame.
 */
const uint8_t *mmc_sim_receives_poll(struct mmc_sim_endpoint *endpoint,
				     uint32_t subgroup,
				     const struct mmc_frame *frame);

/* Posts again the receives that the last poll has taken. */
void mmc_sim_receives_post(struct mmc_sim_endpoint *endpoint);

/* Returns how many plugs the subgroup is to get now; there are receives for them. */
uint32_t mmc_sim_receives_plugs(struct mmc_sim_endpoint *endpoint,
				uint32_t subgroup);

/* Members of struct mmc_driver. */
int mmc_sim_begin_placement(struct mmc_endpoint *endpoint,
			    const struct mmc_predictor *predictor);
int mmc_sim_end_placement(struct mmc_endpoint *endpoint, bool forget);

#endif
