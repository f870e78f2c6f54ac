/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a remote endpoint, and its regions. */
#ifndef MMC_DRIVERS_REMOTE_ENDPOINT_H
#define MMC_DRIVERS_REMOTE_ENDPOINT_H

#include "drivers/remote/remote.h"

struct mmc_remote {
	struct mmc_endpoint endpoint;
	struct mmc_link link;
	uint32_t nranks;
	uint8_t address[MMC_ADDRESS_BYTES_MAX];
	bool reported; /* an event has told that the runner has ended */
	struct mmc_offload_completion ended[MMC_OFFLOAD_REQUESTS];
	bool is_shared[MMC_OFFLOAD_REGIONS]; /* by the number of a region */
	struct mmc_bounce *bounces;	     /* that no operation uses */
	uint64_t bounced_bytes; /* of an adapter's memory, that bounces have */
};

static inline struct mmc_remote *mmc_remote_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_remote *)endpoint;
}

/*
 * Lets the runner use `nbytes` of the file `fd`, as a region whose number is written to
 * `*region`. An adapter cannot use other memory than its own. Returns 0 or a negative error.
 */
int mmc_remote_share(struct mmc_endpoint *endpoint, int fd, uint64_t nbytes,
		     uint32_t *region);

/* Ends what mmc_remote_share() has begun: the runner unmaps that memory. */
void mmc_remote_unshare(struct mmc_endpoint *endpoint, uint32_t region);

/* Frees all bounces, which the runner does not use any more, since the link ends. */
void mmc_remote_free_bounces(struct mmc_remote *remote);

#endif
