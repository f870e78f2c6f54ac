/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP driver: IPv4 multicast on one interface, or on loopback.
 *
 * An endpoint has a control socket (unicast) and a data socket, which sends multicast
 * and repairs and receives unicast repairs. Their ports are of a range or of the
 * kernel's choice (ports.h). Each subgroup has a receive socket that has joined one
 * group, so that the kernel's limit of 20 groups a socket is never met. With up to
 * MMC_UDP_RANKS_APART_MAX ranks every subgroup has, in addition, a receive socket for
 * each other rank, connected to the address that this rank multicasts from: a flood
 * from one rank drops nothing of another's. The subgroup's own socket then hears
 * strangers only, which are counted. The engine watches the control socket and one
 * descriptor that stands for all.
 *
 * The source of a datagram is its sender's address, with either port, looked up among
 * the addresses of connect(); MMC_PEER_UNKNOWN if it is not there. Copies of this
 * rank's own multicasts, which the kernel loops back for other ranks on the host, are
 * dropped. A datagram longer than any of ours is delivered cut and as MMC_PEER_UNKNOWN.
 *
 * send() hands runs of equally long datagrams to one destination to the kernel as a
 * whole (GSO), until the kernel refuses one. poll() receives runs as a whole (GRO) and
 * delivers their datagrams one by one, in order and in place. Those that it has no room
 * for it delivers in the next call, before anything new from that side; the endpoint's
 * deadline tells of them. Staging takes 4 MiB of address space, and as much memory as
 * the longest queue between two calls has ever filled.
 *
 * poll() serves the control socket first, with at most half of the room, and the other
 * sockets in turn: with room for two events or more, none can starve. It delivers up to
 * MMC_UDP_BATCH datagrams a call.
 *
 * send() sleeps while the socket's buffer is full. If that lasts longer than
 * MMC_UDP_ROOM_MS, the rest of the batch counts as lost by the network, and so does
 * what the host refuses to send at this moment (no route, an unplugged interface, a
 * firewall).
 *
 * inquire() asks the kernel of a peer by TCP (inquiries.h). Every endpoint has a
 * listener for that (listener.h), which costs nothing while no rank is silent.
 *
 * close() keeps the groups joined for a while (linger.h).
 */
#ifndef MMC_DRIVERS_UDP_UDP_H
#define MMC_DRIVERS_UDP_UDP_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/* The largest chunk that mmc_udp_chunk_bytes() advises. */
#define MMC_UDP_CHUNK_BYTES_MAX 8960

/* The most datagrams that one system call moves. */
#define MMC_UDP_BATCH 64

/* The longest time that send() waits for room, in milliseconds. */
#define MMC_UDP_ROOM_MS 100

/* The most subgroups, each with a socket beside those for control and data. */
#define MMC_UDP_SUBGROUPS_MAX 62

/* The most ranks with which each source has a receive socket. */
#define MMC_UDP_RANKS_APART_MAX 32

/*
 * The most sockets of an endpoint; processes may have 1024 descriptors or so. If
 * sockets for each source would exceed it, there are none.
 */
#define MMC_UDP_SOCKETS_MAX 256

struct mmc_udp_options {
	uint32_t rank;
	uint32_t nranks;
	struct mmc_interface interface; /* from mmc_udp_interface() */
	uint32_t group;			/* the first group, IPv4, host order */
	uint32_t port;			/* of all groups */
	struct mmc_ports ports;		/* of the control and data sockets */
	uint32_t nsubgroups;		/* as many consecutive groups */
	uint32_t ttl;
	uint32_t chunk_bytes; /* payload of the longest datagram */
	enum mmc_checksum checksum;
};

/*
 * Opens the sockets of a rank, which connect() lets join their groups. Writes to
 * `*buffer_bytes` how many bytes of payload, in full chunks, the receive buffers hold
 * for certain, in all. Where every source has its own socket, that is true if each of
 * the nranks - 1 other ranks sends an equal part of it, and no more; otherwise whoever
 * sends them. Returns 0, -MMC_EINVAL if an option is out of range, -MMC_ENOMEM,
 * -MMC_EADDRINUSE if another program has `port` for itself, or -MMC_EIO.
 *
 * connect() returns -MMC_EINVAL if an address is not one of this driver's, not that of
 * the rank whose place it has, not unique or, for this rank, not its own; and -MMC_EIO
 * if a group cannot be joined. The endpoint is then only fit to be closed. send() and
 * poll() return -MMC_EIO if a socket fails for good.
 */
int mmc_udp_open(const struct mmc_udp_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint);

#endif
