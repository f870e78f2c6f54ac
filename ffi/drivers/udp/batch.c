/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/batch.h"

#include <netinet/udp.h>

#include "support/assert.h"
#include "support/bits.h"
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
 * Writes an iovec of a message, unless there are no bytes; returns where the next goes.
 * The cast removes `const`: sendmmsg() only reads the bytes, although its types do not
 * say so.
 */
static inline struct iovec *write_iovec(struct iovec *at, const uint8_t *bytes,
					uint32_t nbytes)
{
	if (nbytes == 0)
		return at;
	*at = (struct iovec){
		.iov_base = (void *)(uintptr_t)bytes,
		.iov_len = nbytes,
	};
	return at + 1;
}

static inline uint32_t bytes_of(const struct mmc_parcel *parcel)
{
	return parcel->head_bytes + parcel->body_bytes;
}

/* Returns how many more datagrams the newest message can have: 1 at least. */
static uint32_t room_of(const struct mmc_udp_batch *batch)
{
	uint32_t ndatagrams = batch->ndatagrams[batch->nmessages - 1];

	if (!batch->cutting)
		return 1;
	return mmc_max_u32(batch->longest.datagrams, ndatagrams + 1) -
	       ndatagrams;
}

/*
 * Adds the first of `count` parcels to the newest message, which it can join, and those
 * behind it that can join too. Returns how many these are.
 */
static unsigned append(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcels, unsigned count)
{
	unsigned newest = batch->nmessages - 1;
	const struct mmc_parcel *last =
		&parcels[mmc_min_u32(count, room_of(batch)) - 1];
	const struct mmc_parcel *at = parcels;
	struct iovec *begin = &batch->iovecs[batch->niovecs];
	struct iovec *end = begin;
	uint32_t length_bytes = batch->length_bytes;
	uint32_t total_bytes = batch->total_bytes;
	uint32_t nbytes = bytes_of(parcels);
	unsigned n;

	for (;;) {
		end = write_iovec(end, at->head, at->head_bytes);
		end = write_iovec(end, at->body, at->body_bytes);
		total_bytes += nbytes;
		if (nbytes != length_bytes || at == last)
			break;
		nbytes = bytes_of(at + 1);
		if (nbytes > length_bytes ||
		    total_bytes + nbytes > batch->longest.payload_bytes)
			break;
		at++;
	}
	n = (unsigned)(at - parcels) + 1;
	batch->ended = bytes_of(at) < length_bytes;
	batch->total_bytes = total_bytes;
	batch->niovecs += (unsigned)(end - begin);
	batch->messages[newest].msg_hdr.msg_iovlen += (size_t)(end - begin);
	batch->ndatagrams[newest] += n;
	/* A message of several datagrams is a train, which has to be cut. */
	if (batch->ndatagrams[newest] > 1)
		cut(batch);
	return n;
}

void mmc_udp_batch_add(struct mmc_udp_batch *batch,
		       const struct mmc_parcel *parcels, unsigned count,
		       struct sockaddr_in *target)
{
	batch->nparcels += count;
	MMC_ASSERT(batch->nparcels <= MMC_UDP_BATCH);
	while (count > 0) {
		unsigned n;

		if (!can_join(batch, bytes_of(parcels), target))
			begin_message(batch, bytes_of(parcels), target);
		n = append(batch, parcels, count);
		parcels += n;
		count -= n;
	}
}
