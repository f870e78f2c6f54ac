/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns parcels into messages for sendmmsg(). Consecutive parcels to the same
 * destination become one message, a *train* of datagrams, if they have the same length;
 * only the last may be shorter. The kernel or the device cuts a train into its
 * datagrams (generic segmentation offload, GSO).
 */
#ifndef MMC_DRIVERS_UDP_BATCH_H
#define MMC_DRIVERS_UDP_BATCH_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "drivers/driver.h"
#include "drivers/udp/segmentation.h"
#include "drivers/udp/udp.h"

/*
 * The most datagrams in a train, as of the kernels that cut trains (UDP_MAX_SEGMENTS;
 * newer ones allow twice as many). A train leaves the host without pauses, at the link's
 * speed; how long it should be is up to the sender (core/flow/train.h).
 */
#define MMC_UDP_TRAIN_DATAGRAMS_MAX 64

/* The most payload bytes in one message: as many as one UDP datagram can carry. */
#define MMC_UDP_TRAIN_PAYLOAD_MAX 65507

/* The control data that tells the kernel how long the datagrams of a train are. */
union mmc_udp_cut {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
};

struct mmc_udp_batch {
	/* Whether the kernel can cut trains. If not, each parcel is its own message. */
	bool cutting;
	struct mmc_udp_segmentation
		longest; /* trains that pass the interface whole */
	unsigned nparcels;
	unsigned niovecs;
	unsigned nmessages;

	/* The length of each datagram of the newest message but perhaps the last. */
	uint32_t length_bytes;
	/* The length of all datagrams of the newest message together. */
	uint32_t total_bytes;
	/*
	 * Whether the last datagram of the newest message is shorter than the others,
	 * so that no further datagram can join this message.
	 */
	bool ended;

	struct mmsghdr messages[MMC_UDP_BATCH];
	unsigned ndatagrams[MMC_UDP_BATCH]; /* how many each message has */
	/* The control data of each message; used only if the message is a train. */
	union mmc_udp_cut cuts[MMC_UDP_BATCH];
	/* The heads and bodies of all parcels in order, without the empty ones. */
	struct iovec iovecs[2 * MMC_UDP_BATCH];
};

/* Removes all parcels from a batch; `cutting` and `longest` do not change. */
void mmc_udp_batch_clear(struct mmc_udp_batch *batch);

/*
 * Adds `count` parcels for `target` to a batch, which then holds at most MMC_UDP_BATCH
 * parcels. The parcels' bytes and `target` must stay valid until the batch has been
 * sent. Targets are compared as pointers: parcels can only share a message if they have
 * the same `target`.
 */
void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcels, unsigned count,
		       struct sockaddr_in *target);

#endif
