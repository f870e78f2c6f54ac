/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <string.h>

#include "drivers/error.h"
#include "drivers/udp/endpoint.h"

/* Asked for; unprivileged users get what net.core.rmem_max allows. */
#define RCVBUF_BYTES (4 << 20)

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* A bigger buffer than the system allows ordinary users is tried for first. */
static void enlarge_buffer(int fd)
{
	if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF_BYTES) != 0)
		set_option(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF_BYTES);
}

static int set_sending(int fd, const struct mmc_udp_options *options)
{
	struct in_addr via = {
		.s_addr = htonl(options->interface.address),
	};

	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via)))
		return -1;
	if (set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, (int)options->ttl))
		return -1;
	if (set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1))
		return -1;
	/*
	 * PROBE sends whole or not at all, as DO does, but a forged "too big"
	 * cannot shrink what we may send.
	 */
	if (!options->interface.loopback &&
	    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE))
		return -1;
	return 0;
}

/* Others on the host receive the group on the same port. */
static int set_receiving(int fd)
{
	if (set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1))
		return -1;
	return set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

/*
 * Lets the kernel drop copies of our own multicasts before they take room in
 * the receive buffer, which no window accounts for: the others' progress says
 * nothing of how far we have drained our own. Without it poll() drops them.
 */
static void refuse_own(int fd, const struct mmc_udp_address *own)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), /* UDP source port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own->data_port, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)SKF_NET_OFF + 12), /* IPv4 source */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own->ip, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = {
		.len = sizeof(steps) / sizeof(steps[0]),
		.filter = steps,
	};

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Opens the next socket of the endpoint and binds it. */
static int open_socket(struct mmc_udp *udp, uint32_t ip, uint32_t port)
{
	struct sockaddr_in address = mmc_udp_socket_address(ip, port);
	char text[INET_ADDRSTRLEN];
	int fd, rv;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		mmc_error_set("cannot open a socket: %s", strerror(errno));
		return -MMC_EIO;
	}
	udp->sockets[udp->nsockets++] =
		(struct pollfd){ .fd = fd, .events = POLLIN };
	enlarge_buffer(fd);
	rv = port == 0 ? set_sending(fd, &udp->options) : set_receiving(fd);
	if (rv == 0)
		rv = bind(fd, (struct sockaddr *)&address, sizeof(address));
	if (rv != 0) {
		mmc_error_set("cannot bind a socket to %s:%u on %s: %s",
			      inet_ntop(AF_INET, &address.sin_addr, text,
					sizeof(text)),
			      port, udp->options.interface.name,
			      strerror(errno));
		return -MMC_EIO;
	}
	return 0;
}

/* The port that the kernel chose, or 0. */
static uint16_t bound_port(int fd)
{
	struct sockaddr_in address = { .sin_port = 0 };
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return 0;
	return ntohs(address.sin_port);
}

int mmc_udp_open_sockets(struct mmc_udp *udp)
{
	const struct mmc_udp_options *options = &udp->options;
	int rv = 0;

	for (unsigned i = 0; i < MMC_UDP_GROUP0 && rv == 0; i++)
		rv = open_socket(udp, options->interface.address, 0);
	if (rv < 0)
		return rv;
	udp->own = (struct mmc_udp_address){
		.rank = options->rank,
		.ip = options->interface.address,
		.control_port = bound_port(udp->sockets[MMC_UDP_CONTROL].fd),
		.data_port = bound_port(udp->sockets[MMC_UDP_DATA].fd),
	};
	for (unsigned i = 0; i < options->nsubgroups && rv == 0; i++) {
		uint32_t group = options->group + i;

		udp->groups[i] = mmc_udp_socket_address(group, options->port);
		rv = open_socket(udp, group, options->port);
		if (rv == 0)
			refuse_own(udp->sockets[MMC_UDP_GROUP0 + i].fd,
				   &udp->own);
	}
	return rv;
}

/*
 * What the kernel charges a receive buffer for a datagram: at most the memory
 * behind it, a power of two with its own bookkeeping, and a descriptor.
 */
static uint64_t charge_bytes(uint64_t datagram_bytes)
{
	uint64_t memory_bytes = 512;

	while (memory_bytes < datagram_bytes + 448)
		memory_bytes *= 2;
	return memory_bytes + 320;
}

uint32_t mmc_udp_safe_bytes(const struct mmc_udp *udp)
{
	uint64_t chunk_bytes = udp->options.chunk_bytes;
	uint64_t datagram_bytes =
		chunk_bytes + mmc_udp_around_bytes(udp->options.checksum);
	uint64_t least_bytes = INT32_MAX;
	uint64_t nchunks;

	for (unsigned i = MMC_UDP_DATA; i < udp->nsockets; i++) {
		int effective = 0;
		socklen_t size = sizeof(effective);

		getsockopt(udp->sockets[i].fd, SOL_SOCKET, SO_RCVBUF,
			   &effective, &size);
		if (effective >= 0 && (uint64_t)effective < least_bytes)
			least_bytes = (uint64_t)effective;
	}
	/* The kernel may hold back a quarter while the queue is not empty. */
	nchunks = least_bytes * 3 / 4 / charge_bytes(datagram_bytes);
	if (nchunks * chunk_bytes * 23 > least_bytes * 10)
		nchunks = least_bytes * 10 / 23 / chunk_bytes;
	return (uint32_t)((nchunks > 0 ? nchunks : 1) * chunk_bytes);
}
