/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "drivers/error.h"
#include "drivers/udp/endpoint.h"

/*
 * Calls on one socket in one poll(). Only datagrams that we sent ourselves, or
 * that pose as such, make a second one necessary: the bound is against these.
 */
#define CALLS_MAX 4

/* Points messages at their slots again: the kernel has changed them. */
static void prepare_batch(struct mmc_udp *udp, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		udp->rx_pieces[i] = (struct iovec){
			.iov_base = udp->slots[i],
			.iov_len = udp->slot_bytes,
		};
		udp->rx[i].msg_hdr = (struct msghdr){
			.msg_name = &udp->rx_from[i],
			.msg_namelen = sizeof(udp->rx_from[i]),
			.msg_iov = &udp->rx_pieces[i],
			.msg_iovlen = 1,
		};
	}
}

static uint32_t source_of(const struct mmc_udp *udp, unsigned message)
{
	const struct sockaddr_in *from = &udp->rx_from[message];

	if (udp->rx[message].msg_hdr.msg_flags & MSG_TRUNC)
		return MMC_PEER_UNKNOWN;
	return mmc_udp_peers_find(&udp->peers, ntohl(from->sin_addr.s_addr),
				  ntohs(from->sin_port));
}

/*
 * Makes events of the datagrams in slots `first` and on. Event i owns slot i:
 * slots of dropped datagrams change places with those behind them.
 */
static unsigned accept_batch(struct mmc_udp *udp, struct mmc_event *events,
			     unsigned first, unsigned count)
{
	unsigned nevents = first;

	for (unsigned i = first; i < first + count; i++) {
		uint32_t source = source_of(udp, i);
		uint8_t *slot = udp->slots[i];

		if (source == udp->options.rank)
			continue;
		udp->slots[i] = udp->slots[nevents];
		udp->slots[nevents] = slot;
		events[nevents++] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = slot,
			.nbytes = udp->rx[i].msg_len,
			.source = source,
		};
	}
	return nevents;
}

/* Errors that an unreachable peer or a busy host leaves on a socket. */
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

/*
 * Fills `events` from index `nevents` up to `nmax` from one socket. Returns the
 * number of events that there are now, or a negative error.
 */
static int drain(struct mmc_udp *udp, unsigned which, struct mmc_event *events,
		 unsigned nevents, unsigned nmax)
{
	for (unsigned call = 0; call < CALLS_MAX && nevents < nmax; call++) {
		unsigned room = nmax - nevents;
		int received;

		prepare_batch(udp, nevents, room);
		received = recvmmsg(udp->sockets[which].fd, udp->rx + nevents,
				    room, MSG_DONTWAIT, NULL);
		if (received < 0 && !is_passing(errno)) {
			mmc_error_set("receiving on %s: %s",
				      udp->options.interface.name,
				      strerror(errno));
			return -MMC_EIO;
		}
		if (received <= 0)
			break;
		nevents =
			accept_batch(udp, events, nevents, (unsigned)received);
		if ((unsigned)received < room)
			break;
	}
	return (int)nevents;
}

int mmc_udp_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax)
{
	struct mmc_udp *udp = (struct mmc_udp *)endpoint;
	unsigned nothers = udp->nsockets - MMC_UDP_DATA;
	int nevents = 0;

	if (nmax > MMC_UDP_BATCH)
		nmax = MMC_UDP_BATCH;
	if (poll(udp->sockets, udp->nsockets, 0) <= 0)
		return 0;
	if (udp->sockets[MMC_UDP_CONTROL].revents != 0)
		nevents =
			drain(udp, MMC_UDP_CONTROL, events, 0, (nmax + 1) / 2);
	for (unsigned i = 0; i < nothers && nevents >= 0; i++) {
		unsigned which = MMC_UDP_DATA + (udp->turn + i) % nothers;

		if (udp->sockets[which].revents != 0)
			nevents = drain(udp, which, events, (unsigned)nevents,
					nmax);
	}
	udp->turn = (udp->turn + 1) % nothers;
	return nevents;
}
