/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `verbs` driver: one rank's endpoint on an RDMA device, InfiniBand or RoCE v2.
 * Each subgroup has an unreliable datagram queue pair, which multicasts chunks to the
 * group and receives what others multicast. Reliable connections to the partners of the
 * dissemination barrier, which include the neighbours in the ring of ranks, carry
 * control messages and reads of memory. One more datagram queue pair carries unicast
 * datagrams: control for all other ranks, and chunks for one rank alone.
 *
 * libibverbs and librdmacm are opened at run time. If this library was built without
 * their headers, every function here returns an error that says so.
 */
#ifndef MMC_DRIVERS_VERBS_VERBS_H
#define MMC_DRIVERS_VERBS_VERBS_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/*
 * Opens the queue pairs of a rank; connect() then attaches those of the subgroups to
 * their groups, and connects to the partners. Writes to `*buffer_bytes` how many bytes
 * of payload, in full chunks, the posted receives hold. An eighth of the receives is
 * not counted: it is left to control messages and to copies of this rank's own
 * multicasts. Returns 0, -MMC_EINVAL if an option is out of range, -MMC_ENOMEM,
 * -MMC_ENODEV if the device cannot be used, or -MMC_EIO, with the reason set.
 *
 * connect() returns -MMC_EINVAL if an address was not made by this driver, belongs to
 * another rank than its place says, or occurs twice, or if the one in this rank's place
 * is not its own; it returns -MMC_EIO if a group cannot be joined or a connection to a
 * partner cannot be set up. After an error the endpoint can only be closed. All ranks
 * must have completed connect() before any of them sends control: a partner that
 * answers none of the adapter's retries counts as unreachable.
 */
int mmc_verbs_open(const struct mmc_team_options *options,
		   uint32_t *buffer_bytes, struct mmc_endpoint **endpoint);

#endif
