/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint of a team whose operations a runner carries out. It has no datagrams: its
 * events say that an operation has ended, or that more chunks are present. See
 * mpimcast/abi/offload.h.
 */
#ifndef MMC_DRIVERS_REMOTE_REMOTE_H
#define MMC_DRIVERS_REMOTE_REMOTE_H

#include <mpimcast/abi/offload.h>

#include "drivers/driver.h"
#include "drivers/remote/link.h"

/* The place in the ABI of memory that is not there. */
#define MMC_REMOTE_NOWHERE                                                     \
	((struct mmc_offload_place){ .region = MMC_OFFLOAD_NOWHERE })

/* A bounce buffer: memory that this process and the runner can both use. */
struct mmc_bounce {
	struct mmc_bounce *next; /* in the endpoint's list of free ones */
	uint8_t *bytes;
	uint64_t nbytes;
	uint32_t region;
	uint64_t offset_bytes; /* in that region */
};

/*
 * Opens an endpoint by the proxy that `options` name, and has that open the team. Returns
 * 0 or a negative error, with the reason in mmc_last_error().
 */
int mmc_remote_open(const struct mmc_team_options *options,
		    struct mmc_endpoint **endpoint);

/* Returns the endpoint's link, through which calls and commands go. */
struct mmc_link *mmc_remote_link(struct mmc_endpoint *endpoint);

/*
 * Returns memory of at least `nbytes` that this process and the runner share, for the use
 * of one operation; NULL if there is none, with the reason in mmc_last_error().
 */
struct mmc_bounce *mmc_remote_take_bounce(struct mmc_endpoint *endpoint,
					  uint64_t nbytes);

/* Takes memory back from an operation that has ended; NULL is allowed. */
void mmc_remote_give_bounce(struct mmc_endpoint *endpoint,
			    struct mmc_bounce *bounce);

/* Returns the number in the ABI of a region that the driver's share_memory() has made. */
uint32_t mmc_remote_region(const struct mmc_region *region);

#endif
