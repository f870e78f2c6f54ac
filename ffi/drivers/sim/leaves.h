/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric of networks whose user describes none: one switch, or leaf switches under
 * one spine. The hosts of a leaf have consecutive numbers. The links are those from all
 * hosts to their leaves, then those back; if there is a spine, the links from all leaves
 * to the spine follow, then those back.
 */
#ifndef MMC_DRIVERS_SIM_LEAVES_H
#define MMC_DRIVERS_SIM_LEAVES_H

#include "drivers/sim/network.h"

/*
 * Describes the fabric that the options of a network ask for. The arrays are in one
 * piece of memory, which the caller frees as `fabric->links`. Returns 0, -MMC_EINVAL if
 * there are more leaves than hosts, or none, or -MMC_ENOMEM.
 */
int mmc_leaves_build(const struct mmc_network_options *options,
		     struct mmc_fabric *fabric);

#endif
