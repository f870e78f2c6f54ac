/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages that one system call sends, made of parcels. Consecutive parcels to one
 * destination form one message, a *run* of datagrams, if all have the same length; only
 * the last may be shorter. The kernel or the device cuts a run into its datagrams (generic
 * segmentation offload, GSO).
 */
#ifndef MMC_DRIVERS_UDP_BATCH_H
#define MMC_DRIVERS_UDP_BATCH_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "drivers/driver.h"
#include "drivers/udp/udp.h"

/*
 * The most datagrams in a run. A run leaves the host as one burst at the link's speed.
 * Twenty full Ethernet datagrams are 30 KB, which rate limiters and the queues of small
 * switches let pass at once. Longer runs would hardly save any more processor time.
 */
#define MMC_UDP_RUN_DATAGRAMS_MAX 20

/* The most payload bytes in one message: as many as one UDP datagram can carry. */
#define MMC_UDP_RUN_PAYLOAD_MAX 65507

/* The control data that tells the kernel how long the datagrams of a run are. */
union mmc_udp_cut {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
};

struct mmc_udp_batch {
	bool cutting; /* whether the kernel cuts runs; if not, none is formed */
	unsigned nparcels;
	unsigned npieces;
	unsigned nmessages;

	/* Of the newest message: */
	uint32_t
		length_bytes; /* of each of its datagrams; the last may be shorter */
	uint32_t total_bytes; /* of all its datagrams */
	bool ended; /* its last datagram is shorter: nothing may follow it */

	struct mmsghdr messages[MMC_UDP_BATCH];
	unsigned ndatagrams[MMC_UDP_BATCH]; /* the number in each message */
	union mmc_udp_cut cuts[MMC_UDP_BATCH];
	struct iovec
		pieces[2 *
		       MMC_UDP_BATCH]; /* of each parcel a head and a body */
};

void mmc_udp_batch_clear(struct mmc_udp_batch *batch);

/*
 * Adds a parcel for `target` to a batch, which must hold fewer than MMC_UDP_BATCH of them. The
 * parcel's bytes and `target` must stay valid until the batch has been sent. Targets
 * are compared by address: only parcels with the same `target` object share a message.
 */
void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcel,
		       struct sockaddr_in *target);

#endif
