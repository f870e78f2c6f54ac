/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of one system call, gathered from parcels. A run of equally long parcels
 * to one destination, of which the last may be shorter, makes one message, which the
 * kernel or the device cuts into datagrams (GSO).
 */
#ifndef MMC_DRIVERS_UDP_BATCH_H
#define MMC_DRIVERS_UDP_BATCH_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "drivers/driver.h"
#include "drivers/udp/udp.h"

/*
 * The most datagrams of a run. A run leaves the host as one burst at the link's speed.
 * Twenty full Ethernet datagrams are 30 KB: rate limiters and the queues of small
 * switches let that pass at once, and the cost of a single datagram hardly matters any
 * more.
 */
#define MMC_UDP_RUN_DATAGRAMS_MAX 20

/* The most payload of a message, whatever it is cut into. */
#define MMC_UDP_RUN_PAYLOAD_MAX 65507

/* Tells the kernel how long the datagrams of a run are. */
union mmc_udp_cut {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
};

struct mmc_udp_batch {
	bool cutting; /* runs may be formed */
	unsigned nparcels;
	unsigned npieces;
	unsigned nmessages;
	/* The newest message. */
	uint32_t length_bytes; /* of each datagram of it but the last */
	uint32_t total_bytes;
	bool ended; /* its last datagram was shorter */

	struct mmsghdr messages[MMC_UDP_BATCH];
	unsigned ndatagrams[MMC_UDP_BATCH]; /* in each message */
	union mmc_udp_cut cuts[MMC_UDP_BATCH];
	struct iovec pieces[2 * MMC_UDP_BATCH]; /* a head and a body each */
};

void mmc_udp_batch_clear(struct mmc_udp_batch *batch);

/*
 * Adds a parcel for `target`. Parcel and target must outlive the batch's use, and there
 * must be room. Parcels have one destination if their targets are the same object.
 */
void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcel,
		       struct sockaddr_in *target);

#endif
