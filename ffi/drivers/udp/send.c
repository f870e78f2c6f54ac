/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "core/assert.h"
#include "drivers/error.h"
#include "drivers/udp/endpoint.h"

/* A pause for a device's queue, which no descriptor tells of. */
#define QUEUE_MS 1

/* Multicast always leaves from the data socket: it alone is set up for it. */
static unsigned socket_of(const struct mmc_parcel *parcel)
{
	return parcel->control && parcel->peer != MMC_PEER_ALL ? MMC_UDP_CONTROL
							       : MMC_UDP_DATA;
}

static struct sockaddr_in *target_of(struct mmc_udp *udp,
				     const struct mmc_parcel *parcel)
{
	if (parcel->peer == MMC_PEER_ALL) {
		MMC_ASSERT(parcel->subgroup < udp->options.nsubgroups);
		return &udp->groups[parcel->subgroup];
	}
	MMC_ASSERT(parcel->peer < udp->options.nranks);
	return parcel->control ? &udp->control[parcel->peer]
			       : &udp->data[parcel->peer];
}

/* sendmmsg() reads what it is given, though its types do not say so. */
static struct iovec piece(const uint8_t *bytes, uint32_t nbytes)
{
	return (struct iovec){
		.iov_base = (void *)(uintptr_t)bytes,
		.iov_len = nbytes,
	};
}

/*
 * Describes the first parcels to the kernel, up to a batch and as long as they
 * leave from one socket. Returns how many they are.
 */
static unsigned fill_batch(struct mmc_udp *udp,
			   const struct mmc_parcel *parcels, unsigned nparcels)
{
	unsigned count = 0;

	while (count < nparcels && count < MMC_UDP_BATCH &&
	       socket_of(&parcels[count]) == socket_of(&parcels[0])) {
		const struct mmc_parcel *parcel = &parcels[count];
		struct iovec *pieces = udp->tx_pieces[count];

		pieces[0] = piece(parcel->head, parcel->head_bytes);
		pieces[1] = piece(parcel->body, parcel->body_bytes);
		udp->tx[count].msg_hdr = (struct msghdr){
			.msg_name = target_of(udp, parcel),
			.msg_namelen = sizeof(struct sockaddr_in),
			.msg_iov = pieces,
			.msg_iovlen = parcel->body_bytes > 0 ? 2 : 1,
		};
		count++;
	}
	return count;
}

enum outcome {
	OUTCOME_RETRY,	/* the datagram may go now */
	OUTCOME_LOST,	/* this datagram is lost */
	OUTCOME_STUCK,	/* and so are all those behind it */
	OUTCOME_BROKEN, /* the socket is of no use */
};

static enum outcome wait_for_room(int fd)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };
	int rv = poll(&writable, 1, MMC_UDP_ROOM_MS);

	return rv == 0 ? OUTCOME_STUCK : OUTCOME_RETRY;
}

static enum outcome outcome_of(int error, int fd)
{
	switch (error) {
	case EINTR:
		return OUTCOME_RETRY;
	case EAGAIN:
		return wait_for_room(fd);
	case ENOBUFS:
	case ENOMEM:
		poll(NULL, 0, QUEUE_MS);
		return OUTCOME_LOST;
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
	case EPERM: /* a firewall's verdict */
		return OUTCOME_LOST;
	default:
		return OUTCOME_BROKEN;
	}
}

static int explain(const struct mmc_udp *udp, int error)
{
	if (error == EMSGSIZE)
		mmc_error_set("a datagram does not fit into the MTU of %s, "
			      "which was %u bytes",
			      udp->options.interface.name,
			      udp->options.interface.mtu_bytes);
	else
		mmc_error_set("sending on %s: %s", udp->options.interface.name,
			      strerror(error));
	return -MMC_EIO;
}

static int send_batch(struct mmc_udp *udp, int fd, unsigned count)
{
	unsigned nsent = 0;

	while (nsent < count) {
		int rv = sendmmsg(fd, udp->tx + nsent, count - nsent, 0);
		int error = errno;

		if (rv >= 0) {
			nsent += (unsigned)rv;
			continue;
		}
		switch (outcome_of(error, fd)) {
		case OUTCOME_RETRY:
			break;
		case OUTCOME_LOST:
			nsent++;
			break;
		case OUTCOME_STUCK:
			return 0;
		case OUTCOME_BROKEN:
			return explain(udp, error);
		}
	}
	return 0;
}

int mmc_udp_send(struct mmc_endpoint *endpoint,
		 const struct mmc_parcel *parcels, unsigned nparcels)
{
	struct mmc_udp *udp = (struct mmc_udp *)endpoint;

	while (nparcels > 0) {
		unsigned count = fill_batch(udp, parcels, nparcels);
		int fd = udp->sockets[socket_of(parcels)].fd;
		int rv = send_batch(udp, fd, count);

		if (rv < 0)
			return rv;
		parcels += count;
		nparcels -= count;
	}
	return 0;
}
