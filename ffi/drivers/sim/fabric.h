/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric of a simulated network: checks the description (mpimcast/fabric.h), and
 * finds the way of a datagram in it.
 */
#ifndef MMC_DRIVERS_SIM_FABRIC_H
#define MMC_DRIVERS_SIM_FABRIC_H

#include <mpimcast/fabric.h>

#include "core/types.h"
#include "drivers/sim/link.h"

/* The most links on the way from one node to another. */
#define MMC_PATH_LINKS_MAX 32

/*
 * Checks that a fabric is as its header demands. Returns 0, -MMC_EINVAL if it is not, or
 * -MMC_ENOMEM.
 */
int mmc_fabric_check(const struct mmc_fabric *fabric);

/* Returns whether a node is a host. */
static inline bool mmc_fabric_is_host(const struct mmc_fabric *fabric,
				      uint32_t node)
{
	return node < fabric->nhosts;
}

/* Returns the number of the switch that a node is, or that the host hangs on. */
static inline uint32_t mmc_fabric_switch_of(const struct mmc_fabric *fabric,
					    uint32_t node)
{
	uint32_t place = mmc_fabric_is_host(fabric, node)
				 ? fabric->links[node].to
				 : node;

	return place - fabric->nhosts;
}

/* Returns whether a link connects two switches. */
static inline bool mmc_fabric_is_inner(const struct mmc_fabric *fabric,
				       uint32_t link)
{
	return link >= 2 * fabric->nhosts;
}

/* The two nodes between which a datagram or a convoy travels. */
struct mmc_journey {
	uint32_t from;
	uint32_t to;
};

/*
 * Returns the link by which the node `at` forwards what is on a journey and has not
 * arrived. `seed` selects the hash; `states`, one for each link, have the queues.
 */
uint32_t mmc_fabric_next_link(const struct mmc_fabric *fabric, uint32_t at,
			      struct mmc_journey journey, uint64_t seed,
			      const struct mmc_link *states);

/*
 * Writes the links of a journey, at most MMC_PATH_LINKS_MAX, to `links`, as
 * mmc_fabric_next_link() chooses them now. Returns their number.
 */
uint32_t mmc_fabric_path(const struct mmc_fabric *fabric,
			 struct mmc_journey journey, uint64_t seed,
			 const struct mmc_link *states, uint32_t *links);

#endif
