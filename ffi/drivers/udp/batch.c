/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/batch.h"

#include <netinet/udp.h>

#include "support/assert.h"
#include "support/memory.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* headers older than the kernel do not define it */
#endif

_Static_assert(MMC_UDP_BATCH <= MMC_UDP_TRAIN_DATAGRAMS_MAX,
	       "a batch is not too long for a train");

void mmc_udp_batch_clear(struct mmc_udp_batch *batch)
{
	batch->nparcels = 0;
	batch->niovecs = 0;
	batch->nmessages = 0;
}

/* Returns whether a datagram of `nbytes` for `target` can join the newest message. */
static bool can_join(const struct mmc_udp_batch *batch, uint32_t nbytes,
		     const struct sockaddr_in *target)
{
	unsigned newest = batch->nmessages - 1;

	return batch->cutting && batch->nmessages > 0 && !batch->ended &&
	       batch->messages[newest].msg_hdr.msg_name == target &&
	       nbytes <= batch->length_bytes &&
	       batch->total_bytes + nbytes <= batch->longest.payload_bytes &&
	       batch->ndatagrams[newest] < batch->longest.datagrams;
}

/*
 * Begins an empty message to `target`. Each datagram of the message will have `nbytes`;
 * only the last may be shorter.
 */
static void begin_message(struct mmc_udp_batch *batch, uint32_t nbytes,
			  struct sockaddr_in *target)
{
	unsigned newest = batch->nmessages++;

	batch->messages[newest].msg_hdr = (struct msghdr){
		.msg_name = target,
		.msg_namelen = sizeof(*target),
		.msg_iov = &batch->iovecs[batch->niovecs],
	};
	batch->ndatagrams[newest] = 0;
	batch->length_bytes = nbytes;
	batch->total_bytes = 0;
	batch->ended = false;
}

/* Tells the kernel to cut the newest message into datagrams of `length_bytes`. */
static void cut(struct mmc_udp_batch *batch)
{
	unsigned newest = batch->nmessages - 1;
	struct msghdr *message = &batch->messages[newest].msg_hdr;
	uint16_t length_bytes = (uint16_t)batch->length_bytes;
	struct cmsghdr *header;

	message->msg_control = &batch->cuts[newest];
	message->msg_controllen = sizeof(batch->cuts[newest]);
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = IPPROTO_UDP;
	header->cmsg_type = UDP_SEGMENT;
	header->cmsg_len = CMSG_LEN(sizeof(length_bytes));
	memcpy(CMSG_DATA(header), &length_bytes, sizeof(length_bytes));
}

/*
 * Adds an iovec to the newest message. The cast removes `const`: sendmmsg() only reads
 * the bytes, although its types do not say so.
 */
static void add_iovec(struct mmc_udp_batch *batch, const uint8_t *bytes,
		      uint32_t nbytes)
{
	struct msghdr *message = &batch->messages[batch->nmessages - 1].msg_hdr;

	if (nbytes == 0)
		return;
	batch->iovecs[batch->niovecs++] = (struct iovec){
		.iov_base = (void *)(uintptr_t)bytes,
		.iov_len = nbytes,
	};
	message->msg_iovlen++;
}

void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcel,
		       struct sockaddr_in *target)
{
	uint32_t nbytes = parcel->head_bytes + parcel->body_bytes;

	MMC_ASSERT(batch->nparcels < MMC_UDP_BATCH);
	batch->nparcels++;
	if (!can_join(batch, nbytes, target))
		begin_message(batch, nbytes, target);
	add_iovec(batch, parcel->head, parcel->head_bytes);
	add_iovec(batch, parcel->body, parcel->body_bytes);
	batch->total_bytes += nbytes;
	batch->ended = nbytes < batch->length_bytes;
	/* With its second datagram a message becomes a train. A train has to be cut. */
	if (++batch->ndatagrams[batch->nmessages - 1] == 2)
		cut(batch);
}
