/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP driver: IPv4 multicast on one interface, or on loopback.
 *
 * An endpoint has a control socket (unicast), a data socket (sends multicast
 * and repairs, receives unicast repairs), both on ports of a range or of the
 * kernel's choice (ports.h), and one receive socket for each
 * subgroup, which has joined one group; so the kernel's limit of 20 groups a
 * socket is never met. Up to MMC_UDP_RANKS_APART_MAX ranks every subgroup has,
 * besides, a receive socket for each other rank, connected to the address that
 * it multicasts from: one rank's flood drops nothing of another's. The
 * subgroup's own socket then hears strangers only, who are counted. Watched are
 * the control socket and one descriptor that stands for all.
 *
 * The source of a datagram is the sender's own address, either port, looked up
 * among the addresses of connect(): MMC_PEER_UNKNOWN if it is not there. Copies
 * of our own multicasts, which the kernel loops back for other ranks on the
 * host, are dropped unseen. A datagram longer than any of ours is delivered cut
 * and as MMC_PEER_UNKNOWN.
 *
 * send() hands runs of equally long datagrams to one destination to the kernel
 * as a whole (GSO), until that refuses; poll() takes in runs as a whole (GRO)
 * and delivers their datagrams one by one, in order and in place. What it has
 * no room for it delivers in the next call, before anything new from that side;
 * the endpoint's deadline tells of it. Staging takes 4 MiB of address space,
 * and as much memory as the longest queue between two calls has ever filled.
 *
 * poll() serves the control socket first, with at most half of the room, and
 * the others in turn: with room for two events or more, none can starve. It
 * delivers up to MMC_UDP_BATCH datagrams a call.
 *
 * send() sleeps while the socket's buffer is full. If that lasts longer than
 * MMC_UDP_ROOM_MS, the rest of the batch counts as lost by the network, and so
 * does what the host refuses to send at this moment (no route, an unplugged
 * interface, a firewall).
 *
 * inquire() asks the kernel of a peer by TCP (inquiries.h). Every endpoint has a
 * listener for that (listener.h), which costs nothing while nobody is silent.
 *
 * close() keeps the groups joined for a while (linger.h).
 */
#ifndef MMC_DRIVERS_UDP_UDP_H
#define MMC_DRIVERS_UDP_UDP_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/* The largest chunk that mmc_udp_chunk_bytes() advises. */
#define MMC_UDP_CHUNK_BYTES_MAX 8960

/* Datagrams that one system call moves. */
#define MMC_UDP_BATCH 64

/* How long send() waits for room, in milliseconds. */
#define MMC_UDP_ROOM_MS 100

/* Every subgroup has a socket beside those for control and data. */
#define MMC_UDP_SUBGROUPS_MAX 62

/* The most ranks that have receive sockets of their own. */
#define MMC_UDP_RANKS_APART_MAX 32

/*
 * The most sockets of an endpoint; processes may have 1024 descriptors or so.
 * If sockets for each source would be more, there are none.
 */
#define MMC_UDP_SOCKETS_MAX 256

struct mmc_udp_options {
	uint32_t rank;
	uint32_t nranks;
	struct mmc_interface interface; /* of mmc_udp_interface() */
	uint32_t group;			/* the first one, IPv4, host order */
	uint32_t port;			/* that all groups are received on */
	struct mmc_ports ports;		/* of the control and data sockets */
	uint32_t nsubgroups;		/* consecutive groups */
	uint32_t ttl;
	uint32_t chunk_bytes; /* payload of the longest datagram */
	enum mmc_checksum checksum;
};

/*
 * Opens the sockets of a rank, which connect() lets join their groups. Writes
 * to `*buffer_bytes` how many bytes of payload, in full chunks, the receive
 * buffers hold for certain, in all. Where every source has its own socket that
 * is true if each of the nranks - 1 others sends an equal part of it, and no
 * more; else whoever sends them.
 *
 * Returns 0, -MMC_EINVAL if an option is out of range, -MMC_ENOMEM,
 * -MMC_EADDRINUSE if another program has `port` for itself, or -MMC_EIO.
 * connect() returns -MMC_EINVAL if an address is not of this driver, not of its
 * place's rank, not unique or, for the own rank, not the own one, and -MMC_EIO
 * if a group cannot be joined; the endpoint is then only fit to be closed.
 * send() and poll() return -MMC_EIO if a socket fails for good.
 */
int mmc_udp_open(const struct mmc_udp_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint);

#endif
