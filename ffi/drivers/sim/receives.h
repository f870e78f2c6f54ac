/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receives that a simulated host has posted for its subgroups, if its options ask
 * for any. Each arriving datagram takes the next receive of its subgroup, which decides
 * at once where the payload goes.
 */
#ifndef MMC_DRIVERS_SIM_RECEIVES_H
#define MMC_DRIVERS_SIM_RECEIVES_H

#include "drivers/placement.h"
#include "drivers/sim/network.h"

struct mmc_sim_endpoint;

/* Counts of one subgroup's receives since the beginning. */
struct mmc_sim_ring {
	uint64_t nposted;  /* posted */
	uint64_t narrived; /* taken by an arriving datagram or plug */
	uint64_t npolled;  /* completed by a poll */
};

struct mmc_sim_receives {
	struct mmc_placement placement;
	struct mmc_sim_ring *rings; /* one for each subgroup */
	uint8_t *staging;	    /* the memory of all slots */
	uint32_t nplugs;	    /* plugs that arrived and were not polled */
};

/*
 * Makes and posts all receives. Returns 0 or -MMC_ENOMEM; mmc_sim_receives_destroy()
 * must be called in either case.
 */
int mmc_sim_receives_init(struct mmc_sim_endpoint *endpoint);

void mmc_sim_receives_destroy(struct mmc_sim_endpoint *endpoint);

/*
 * Lets a frame, or a plug if `frame` is NULL, take the next receive of its subgroup.
 * Returns false if none is left.
 */
bool mmc_sim_receives_arrive(struct mmc_sim_endpoint *endpoint,
			     uint32_t subgroup, const struct mmc_frame *frame);

/*
 * Completes the receive that a frame, or a plug if `frame` is NULL, has taken, since a
 * poll now reports it. Returns where the payload lies; NULL: in the frame.
 */
const uint8_t *mmc_sim_receives_poll(struct mmc_sim_endpoint *endpoint,
				     uint32_t subgroup,
				     const struct mmc_frame *frame);

/* Posts again the receives that polls have completed. */
void mmc_sim_receives_post(struct mmc_sim_endpoint *endpoint);

/*
 * Returns how many plugs to send to the subgroup now, at most as many as there are
 * receives left. Counts them as sent.
 */
uint32_t mmc_sim_receives_plugs(struct mmc_sim_endpoint *endpoint,
				uint32_t subgroup);

/* The driver's functions of these names, as driver.h describes them. */
int mmc_sim_begin_placement(struct mmc_endpoint *endpoint,
			    const struct mmc_predictor *predictor);
int mmc_sim_end_placement(struct mmc_endpoint *endpoint, bool forget);

#endif
