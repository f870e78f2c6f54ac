/* SPDX-License-Identifier: BSD-3-Clause */
/* The multicast trees of a fabric: what hangs behind each of their links. */
#ifndef MMC_DRIVERS_SIM_TREE_H
#define MMC_DRIVERS_SIM_TREE_H

#include <mpimcast/fabric.h>

/*
 * Counts, for each tree and link, the hosts that a multicast reaches by way of the link:
 * fills `reach`, [ntrees * nlinks] zeros. Returns 0, -MMC_EINVAL if a tree has a circle
 * or lacks one direction of a link, or -MMC_ENOMEM. The fabric must be checked otherwise.
 */
int mmc_trees_measure(const struct mmc_fabric *fabric, uint32_t *reach);

#endif
