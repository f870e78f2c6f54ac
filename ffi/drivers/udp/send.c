/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "drivers/udp/endpoint.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/error.h"

/*
 * An interface through which nothing could be sent for this long counts as down for
 * good: setting it up again would take less time.
 */
#define DOWN_NS MMC_S_NS

/*
 * How long to sleep, in milliseconds, while the device's queue is full: no descriptor
 * reports when it has room again.
 */
#define QUEUE_MS 1

/* Multicast always leaves from the data socket, the only one that is set up for it. */
static unsigned socket_of(const struct mmc_parcel *parcel)
{
	return parcel->control && parcel->peer != MMC_PEER_ALL ? MMC_UDP_CONTROL
							       : MMC_UDP_DATA;
}

static struct sockaddr_in *target_of(struct mmc_udp *udp,
				     const struct mmc_parcel *parcel)
{
	if (parcel->peer == MMC_PEER_ALL && udp->options.pair)
		return &udp->data[1 - udp->options.rank];
	if (parcel->peer == MMC_PEER_ALL) {
		MMC_ASSERT(parcel->subgroup < udp->options.nsubgroups);
		return &udp->groups[parcel->subgroup];
	}
	MMC_ASSERT(parcel->peer < udp->options.nranks);
	return parcel->control ? &udp->control[parcel->peer]
			       : &udp->data[parcel->peer];
}

/* Returns how many of `nparcels` have the destination of the first. */
static unsigned count_together(const struct mmc_parcel *parcels,
			       unsigned nparcels)
{
	const struct mmc_parcel *first = parcels;
	unsigned count = 1;

	while (count < nparcels && parcels[count].peer == first->peer &&
	       parcels[count].subgroup == first->subgroup &&
	       parcels[count].control == first->control)
		count++;
	return count;
}

/* Fills the batch with the first parcels, up to one that leaves from another socket. */
static void fill_batch(struct mmc_udp *udp, const struct mmc_parcel *parcels,
		       unsigned nparcels)
{
	unsigned socket = socket_of(parcels);
	unsigned count;

	nparcels = mmc_min_u32(nparcels, MMC_UDP_BATCH);
	mmc_udp_batch_clear(&udp->batch);
	for (unsigned i = 0; i < nparcels; i += count) {
		if (socket_of(&parcels[i]) != socket)
			break;
		count = count_together(&parcels[i], nparcels - i);
		mmc_udp_batch_add(&udp->batch, &parcels[i], count,
				  target_of(udp, &parcels[i]));
	}
}

/* What follows from an error of sendmmsg() for the message that was refused. */
enum outcome {
	OUTCOME_RETRY,	/* send the message again */
	OUTCOME_UNCUT,	/* the kernel cuts no trains: send single datagrams */
	OUTCOME_LOST,	/* the message counts as lost */
	OUTCOME_STUCK,	/* the message and all behind it count as lost */
	OUTCOME_DOWN,	/* it counts as lost, but the interface may be down */
	OUTCOME_BROKEN, /* the socket has failed for good */
};

/* Sleeps until the socket's buffer has room, but not longer than MMC_UDP_ROOM_MS. */
static enum outcome wait_for_room(int fd)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };
	int rv = poll(&writable, 1, MMC_UDP_ROOM_MS);

	return rv == 0 ? OUTCOME_STUCK : OUTCOME_RETRY;
}

/* Returns what follows from `error`; `is_train`: the message has several datagrams. */
static enum outcome outcome_of(int error, int fd, bool is_train)
{
	switch (error) {
	case EINTR:
		return OUTCOME_RETRY;
	case EAGAIN:
		return wait_for_room(fd);
	case EIO:    /* the device cannot compute the checksums of a train */
	case EINVAL: /* an old kernel, or datagrams that exceed the MTU */
	case ENOPROTOOPT: /* systems that imitate Linux, without UDP_SEGMENT */
		return is_train ? OUTCOME_UNCUT : OUTCOME_BROKEN;
	case ENOBUFS:
	case ENOMEM:
		poll(NULL, 0, QUEUE_MS);
		return OUTCOME_LOST;
	case ENETUNREACH:
	case ENETDOWN:
	case ENODEV:
		return OUTCOME_DOWN;
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case EHOSTDOWN:
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
			      "which was %u bytes at the start",
			      udp->options.interface.name,
			      udp->options.interface.mtu_bytes);
	else
		mmc_error_set("cannot send on interface %s: %s; check that it "
			      "is up and has its address",
			      udp->options.interface.name, strerror(error));
	return -MMC_EIO;
}

/*
 * Notes that the interface seems to be down. Returns whether that has lasted so long
 * that it counts as down for good.
 */
static bool is_down_for_good(struct mmc_udp *udp)
{
	uint64_t now_ns = udp->endpoint.driver->now_ns(&udp->endpoint);

	if (udp->down_ns == 0)
		udp->down_ns = now_ns;
	return now_ns - udp->down_ns >= DOWN_NS;
}

/*
 * Sends the batch. Writes to `ngone` how many of its parcels have left or count as
 * lost. These are all parcels, unless the kernel refuses a train: the caller then sends
 * the rest again, as single datagrams. Returns 0 or -MMC_EIO.
 */
static int send_batch(struct mmc_udp *udp, int fd, unsigned *ngone)
{
	struct mmc_udp_batch *batch = &udp->batch;
	unsigned nsent = 0;

	*ngone = 0;
	while (nsent < batch->nmessages) {
		int rv = sendmmsg(fd, batch->messages + nsent,
				  batch->nmessages - nsent, 0);
		int error = errno;

		udp->endpoint.tx_calls++;
		for (int i = 0; i < rv; i++)
			*ngone += batch->ndatagrams[nsent++];
		if (rv > 0)
			udp->down_ns = 0;
		if (rv >= 0)
			continue;
		switch (outcome_of(error, fd, batch->ndatagrams[nsent] > 1)) {
		case OUTCOME_RETRY:
			break;
		case OUTCOME_UNCUT:
			batch->cutting = false;
			udp->endpoint.train_datagrams = 0;
			return 0;
		case OUTCOME_LOST:
			*ngone += batch->ndatagrams[nsent++];
			break;
		case OUTCOME_STUCK:
			*ngone = batch->nparcels;
			return 0;
		case OUTCOME_DOWN:
			if (is_down_for_good(udp))
				return explain(udp, error);
			*ngone += batch->ndatagrams[nsent++];
			break;
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
		unsigned ngone;
		int rv;

		fill_batch(udp, parcels, nparcels);
		rv = send_batch(udp, udp->sockets[socket_of(parcels)].fd,
				&ngone);
		if (rv < 0)
			return rv;
		parcels += ngone;
		nparcels -= ngone;
	}
	return 0;
}
