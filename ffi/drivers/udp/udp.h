/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP driver: IPv4 multicast on one interface, or on loopback.
 *
 * An endpoint has a control socket, which sends and receives unicast control, and a
 * data socket, which sends multicast and repairs, and receives unicast repairs. Their
 * ports are of a given range, or chosen by the kernel (ports.h). Each subgroup has a
 * receive socket, which is a member of that subgroup's group alone: the kernel allows
 * only 20 groups per socket.
 *
 * With up to MMC_UDP_RANKS_APART_MAX ranks, each subgroup also has a receive socket for
 * each other rank, which is connected to the address from which that rank multicasts.
 * So a flood from one rank displaces nothing from another. The subgroup's first socket
 * then only receives from strangers, whose datagrams are counted. The engine watches
 * the control socket and one descriptor that stands for all sockets.
 *
 * The source of a datagram is the rank from whose address, with the control or the data
 * port, it was sent; MMC_PEER_UNKNOWN if connect() was given no such address. The
 * kernel loops multicast back for other ranks on the same host; copies of this rank's
 * own are dropped. A datagram longer than any that ranks send is cut off, and its
 * source is MMC_PEER_UNKNOWN.
 *
 * send() hands each train, which is datagrams of equal length to one destination, to
 * the kernel as a whole (GSO, batch.h), until the kernel refuses one. poll() receives
 * trains as a whole (GRO, staging.h) and delivers their datagrams one by one, in order
 * and without a copy. If `events` has no room for all of them, the next call delivers
 * the rest, before any other data; the endpoint's deadline is 0 meanwhile. The staging
 * memory takes 4 MiB of address space, but only as much memory as datagrams have
 * filled.
 *
 * poll() serves the control socket first, with at most half of the room in `events`,
 * and then the other sockets in turn. So no socket can starve if there is room for two
 * events or more. A call delivers up to MMC_UDP_BATCH datagrams. If these are known to be
 * there, it does not ask epoll what else is, but the next call does.
 *
 * send() sleeps while the socket's buffer is full. If that lasts longer than
 * MMC_UDP_ROOM_MS, the rest of the batch counts as lost in the network. So does what
 * the host refuses to send at the moment, because there is no route, the interface is
 * unplugged, or a firewall forbids it.
 *
 * With the option `workers`, a thread for each subgroup receives from its sockets, and
 * hands over what it has received (workers.h). The threads run from connect() to
 * close(). The engine must arm the endpoint to be woken by them.
 *
 * inquire() asks the kernel of a peer over TCP (inquiries.h). For that, every endpoint
 * has a listener (listener.h), which costs nothing while no rank is silent.
 *
 * After close() the groups stay joined for a while (linger.h).
 *
 * In a pair the data socket sends to the other rank's data socket what would be
 * multicast. There are no groups, and no sockets for them; the data socket's receive
 * buffer is larger than others, since a window has to last for a long link.
 */
#ifndef MMC_DRIVERS_UDP_UDP_H
#define MMC_DRIVERS_UDP_UDP_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/* The largest chunk that mmc_udp_chunk_bytes() returns. */
#define MMC_UDP_CHUNK_BYTES_MAX 8960

/* The most datagrams that one system call sends, or messages that one receives. */
#define MMC_UDP_BATCH 64

/* The longest time that send() waits for room, in milliseconds. */
#define MMC_UDP_ROOM_MS 100

/* The most subgroups: each has a socket. */
#define MMC_UDP_SUBGROUPS_MAX 62

/* The most ranks of a team in which each other rank has receive sockets of its own. */
#define MMC_UDP_RANKS_APART_MAX 32

/*
 * The most sockets of an endpoint, since many systems allow a process 1024 descriptors.
 * If a socket for each other rank and subgroup would exceed this, there are none.
 */
#define MMC_UDP_SOCKETS_MAX 256

struct mmc_udp_options {
	uint32_t rank;
	uint32_t nranks;
	struct mmc_interface interface; /* from mmc_udp_interface() */
	uint32_t group;			/* the first group, IPv4, host order */
	uint32_t nsubgroups;		/* the number of consecutive groups */
	uint32_t port;			/* the port of all groups */
	struct mmc_ports ports; /* for control socket, data socket, listener */
	uint32_t ttl;		/* of multicasts, in hops */
	uint32_t chunk_bytes;	/* payload of the longest datagram */
	enum mmc_checksum checksum;
	bool workers; /* whether a thread of its own receives each subgroup */
	bool pair; /* whether the team is a pair (mpimcast/team.h), without workers */
	/* By how much control messages are longer than MMC_MESSAGE_BYTES_MAX. */
	uint32_t seal_bytes;
};

/*
 * Opens the sockets of a rank; connect() then joins the groups. Writes to
 * `*buffer_bytes` how many bytes of payload, in full chunks, the receive buffers are
 * sure to hold in all. If each other rank has sockets of its own, each may have sent an
 * equal part of these bytes, 1 / (nranks - 1), and no more. Returns 0, -MMC_EINVAL if
 * an option is out of range, -MMC_ENOMEM, -MMC_EADDRINUSE if another program uses
 * `port` and does not share it, or -MMC_EIO.
 *
 * connect() returns -MMC_EINVAL if an address was not made by this driver, belongs to
 * another rank than its place says, or occurs twice, or if the one in this rank's place
 * is not its own; it returns -MMC_EIO if a group cannot be joined. After an error the
 * endpoint can only be closed. send() and poll() return -MMC_EIO if a socket fails for
 * good.
 */
int mmc_udp_open(const struct mmc_udp_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint);

#endif
