/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one system call sends: messages that are gathered from parcels. A run of
 * equally long parcels to one destination, of which the last may be shorter,
 * makes one message that the kernel, or the device, cuts into datagrams (GSO).
 */
#ifndef MMC_DRIVERS_UDP_BATCH_H
#define MMC_DRIVERS_UDP_BATCH_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "drivers/driver.h"
#include "drivers/udp/udp.h"

/*
 * A run leaves the host as one burst at the link's speed. Twenty full Ethernet
 * datagrams are 30 KB: what rate limiters and the queues of small switches let
 * pass at once, and enough that a datagram's cost hardly matters any more.
 */
#define MMC_UDP_RUN_DATAGRAMS_MAX 20

/* The payload that one message may have, whatever it is cut into. */
#define MMC_UDP_RUN_PAYLOAD_MAX 65507

/* What tells the kernel how long the datagrams of a run are. */
union mmc_udp_cut {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
};

struct mmc_udp_batch {
	bool cutting; /* runs may be formed */
	unsigned nparcels;
	unsigned npieces;
	unsigned nmessages;
	/* Of the newest message. */
	uint32_t length_bytes; /* its datagrams but the last */
	uint32_t total_bytes;
	bool ended; /* by a shorter one */

	struct mmsghdr messages[MMC_UDP_BATCH];
	unsigned ndatagrams[MMC_UDP_BATCH]; /* in each message */
	union mmc_udp_cut cuts[MMC_UDP_BATCH];
	struct iovec pieces[2 * MMC_UDP_BATCH]; /* a head and a body each */
};

void mmc_udp_batch_clear(struct mmc_udp_batch *batch);

/*
 * Adds a parcel for `target`, which both outlive the batch's use; there must be
 * room. Parcels are for one destination if their targets are the same object.
 */
void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcel,
		       struct sockaddr_in *target);

#endif
