/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that partners may read. A registered region alone gives nobody a right. A
 * grant binds a *memory window* to a part of a region and to one connection: the device
 * then lets the peer of that connection read there, and nobody else. The right ends as
 * the window is freed, which needs nothing of the peer or the connection. Where the
 * device has no windows, each grant is a registration with the right to read, which all
 * partners have.
 */
#ifndef MMC_DRIVERS_VERBS_GRANTS_H
#define MMC_DRIVERS_VERBS_GRANTS_H

#include "drivers/driver.h"

/* The driver's functions of these names, as driver.h describes them. */
int mmc_verbs_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			      size_t nbytes, struct mmc_region *region);
void mmc_verbs_deregister_memory(struct mmc_endpoint *endpoint,
				 struct mmc_region *region);
int mmc_verbs_grant_read(struct mmc_endpoint *endpoint, uint32_t peer,
			 const struct mmc_region *region, const void *memory,
			 size_t nbytes, struct mmc_grant *grant);
void mmc_verbs_revoke_read(struct mmc_endpoint *endpoint,
			   struct mmc_grant *grant);

#endif
