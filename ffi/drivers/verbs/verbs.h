/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `verbs` driver: one rank's endpoint on an RDMA device, InfiniBand or RoCE v2.
 * Chunks are multicast over unreliable datagram queue pairs, one for each subgroup,
 * which also receive. Control and reads of memory go over reliable connections to the
 * ring neighbours and the partners of the dissemination. Control for other ranks, and
 * chunks for one rank alone, are unicast datagrams.
 *
 * libibverbs and librdmacm are opened at run time. Where the library was built without
 * their headers, every function here reports that.
 */
#ifndef MMC_DRIVERS_VERBS_VERBS_H
#define MMC_DRIVERS_VERBS_VERBS_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/*
 * Opens the queues of a rank, which connect() attaches and connects. Writes to
 * `*buffer_bytes` how many bytes of payload, in full chunks, the posted receives hold.
 * An eighth of the receives is not counted: it is left to control and to copies of this
 * rank's own multicasts. Returns 0, -MMC_EINVAL if an option is out of range,
 * -MMC_ENOMEM, -MMC_ENODEV if the device cannot be used or -MMC_EIO, with the reason.
 *
 * connect() returns -MMC_EINVAL if an address is not one of this driver's, not that of
 * the rank whose place it has, not unique or, for this rank, not its own; and -MMC_EIO
 * if a group cannot be joined or a partner not be connected. The endpoint is then only
 * fit to be closed. All ranks must have completed connect() before any of them sends
 * control: a partner that answers none of the adapter's retries counts as unreachable.
 */
int mmc_verbs_open(const struct mmc_team_options *options,
		   uint32_t *buffer_bytes, struct mmc_endpoint **endpoint);

#endif
