/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/staging.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>

#include "support/bits.h"
#include "support/memory.h"

#ifndef UDP_GRO
#define UDP_GRO 104 /* the headers may be older than the kernel */
#endif

int mmc_udp_staging_init(struct mmc_udp_staging *staging, uint32_t slot_bytes)
{
	/* Memory that no datagram reaches is never touched, so it costs nothing. */
	staging->memory = malloc((size_t)MMC_UDP_BATCH * slot_bytes);
	staging->slot_bytes = slot_bytes;
	staging->ndatagrams = 1;
	for (unsigned i = 0; i < MMC_UDP_BATCH; i++)
		staging->slots[i] = (uint8_t)i;
	return staging->memory == NULL ? -MMC_ENOMEM : 0;
}

void mmc_udp_staging_destroy(struct mmc_udp_staging *staging)
{
	free(staging->memory);
}

/* Swaps two messages, and their slots. */
static void swap(struct mmc_udp_staging *staging, unsigned a, unsigned b)
{
	struct mmsghdr message = staging->messages[a];
	uint8_t slot = staging->slots[a];

	staging->messages[a] = staging->messages[b];
	staging->slots[a] = staging->slots[b];
	staging->messages[b] = message;
	staging->slots[b] = slot;
}

void mmc_udp_staging_reuse(struct mmc_udp_staging *staging)
{
	unsigned nheld = staging->nreceived - staging->ntaken;

	if (staging->ntaken == 0)
		return;
	for (unsigned i = 0; i < nheld; i++)
		swap(staging, i, staging->ntaken + i);
	staging->nreceived = nheld;
	staging->ntaken = 0;
}

/*
 * Prepares the next `count` messages to be received, anew each time, since the kernel
 * changes their headers.
 */
static void prepare(struct mmc_udp_staging *staging, unsigned count)
{
	for (unsigned i = staging->nreceived; i < staging->nreceived + count;
	     i++) {
		unsigned slot = staging->slots[i];

		staging->iovecs[slot] = (struct iovec){
			.iov_base = staging->memory +
				    (size_t)slot * staging->slot_bytes,
			.iov_len = staging->slot_bytes,
		};
		staging->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &staging->from[slot],
			.msg_namelen = sizeof(staging->from[slot]),
			.msg_iov = &staging->iovecs[slot],
			.msg_iovlen = 1,
			.msg_control = &staging->lengths[slot],
			.msg_controllen = sizeof(staging->lengths[slot]),
		};
	}
}

uint32_t mmc_udp_train_length(struct msghdr *message, uint32_t nbytes)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL;
	     at = CMSG_NXTHDR(message, at)) {
		int length;

		if (at->cmsg_level != IPPROTO_UDP || at->cmsg_type != UDP_GRO ||
		    at->cmsg_len < CMSG_LEN(sizeof(length)))
			continue;
		memcpy(&length, CMSG_DATA(at), sizeof(length));
		if (length > 0 && (uint32_t)length < nbytes)
			return (uint32_t)length;
	}
	return nbytes;
}

/*
 * Returns whether an error of a socket will pass: an unreachable peer or a busy host
 * has caused it, and the socket still works.
 */
static bool is_passing(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
	case ENOBUFS:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

int mmc_udp_staging_receive(struct mmc_udp_staging *staging, int fd,
			    unsigned nwanted, bool *more)
{
	unsigned room = MMC_UDP_BATCH - staging->nreceived;
	unsigned asked =
		(nwanted + staging->ndatagrams - 1) / staging->ndatagrams + 1;
	struct mmsghdr *messages = staging->messages + staging->nreceived;
	int received;

	asked = mmc_min_u32(asked, room);
	*more = false;
	if (asked == 0)
		return 0;
	prepare(staging, asked);
	staging->ncalls++;
	received = recvmmsg(fd, messages, asked, MSG_DONTWAIT, NULL);
	if (received <= 0)
		return received == 0 || is_passing(errno) ? 0 : -1;
	staging->nreceived += (unsigned)received;
	*more = (unsigned)received == asked;
	return received;
}

bool mmc_udp_staging_look(struct mmc_udp_staging *staging,
			  struct mmc_udp_train *train)
{
	struct mmsghdr *message;
	unsigned slot;

	if (!mmc_udp_staging_holds(staging))
		return false;
	message = &staging->messages[staging->ntaken];
	slot = staging->slots[staging->ntaken];
	*train = (struct mmc_udp_train){
		.bytes = (uint8_t *)staging->iovecs[slot].iov_base +
			 staging->taken_bytes,
		.nbytes = message->msg_len - staging->taken_bytes,
		.length_bytes = mmc_udp_train_length(&message->msg_hdr,
						     message->msg_len),
		.cut = (message->msg_hdr.msg_flags & MSG_TRUNC) != 0,
		.from = &staging->from[slot],
	};
	return true;
}

void mmc_udp_staging_take(struct mmc_udp_staging *staging,
			  const struct mmc_udp_train *train, uint32_t nbytes)
{
	uint32_t length_bytes = mmc_max_u32(train->length_bytes, 1);

	staging->taken_bytes += nbytes;
	if (nbytes < train->nbytes)
		return;
	staging->ndatagrams = mmc_max_u32(
		1, (staging->taken_bytes + length_bytes - 1) / length_bytes);
	staging->ntaken++;
	staging->taken_bytes = 0;
}
