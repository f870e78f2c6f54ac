/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/udp/endpoint.h"
#include "drivers/udp/ports.h"
#include "support/error.h"

#ifndef UDP_GRO
#define UDP_GRO 104 /* the headers may be older than the kernel */
#endif

/* The receive buffer to ask for; ordinary users get what net.core.rmem_max allows. */
#define RCVBUF_BYTES (4 << 20)

/* The same in a pair: all that is on a long link may arrive while nobody reads. */
#define RCVBUF_PAIR_BYTES (8 << 20)

/*
 * How many connections the listener queues for each rank: a peer may connect again
 * before the process accepts its first connection.
 */
#define LISTENER_QUEUE_RANKS 2

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* Enlarges the receive buffer, for privileged users beyond net.core.rmem_max. */
static void enlarge_buffer(int fd, int nbytes)
{
	if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, nbytes) != 0)
		set_option(fd, SOL_SOCKET, SO_RCVBUF, nbytes);
}

/* Prepares a socket to send unicast and multicast. Returns 0, or -1 with errno set. */
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
	 * Both IP_PMTUDISC_PROBE and IP_PMTUDISC_DO forbid fragments. But with PROBE
	 * the kernel ignores ICMP messages that a packet was too big, which anyone can
	 * forge.
	 */
	if (!options->interface.loopback &&
	    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE))
		return -1;
	return 0;
}

/*
 * Prepares a socket to receive one group, on a port where other processes of the same
 * user may also receive it: each gets a copy of every multicast. SO_REUSEADDR would let
 * any user bind the port. With IP_MULTICAST_ALL off, the socket gets no groups that only
 * other sockets have joined. Returns 0, or -1 with errno set.
 */
static int set_receiving(int fd)
{
	if (set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1))
		return -1;
	return set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

/* Sets the options of the endpoint's next socket. Returns 0, or -1 with errno set. */
static int configure(const struct mmc_udp *udp, int fd, bool is_group)
{
	enlarge_buffer(fd,
		       udp->options.pair ? RCVBUF_PAIR_BYTES : RCVBUF_BYTES);
	/* Datagrams arrive in trains if the kernel knows UDP_GRO, otherwise singly. */
	if (udp->nsockets != MMC_UDP_CONTROL)
		set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	return is_group ? set_receiving(fd) : set_sending(fd, &udp->options);
}

/* Sets the error's text from errno. Returns -MMC_EADDRINUSE or -MMC_EIO. */
static int explain(const struct mmc_udp *udp, const struct sockaddr_in *address)
{
	int rv = errno == EADDRINUSE ? -MMC_EADDRINUSE : -MMC_EIO;
	char text[INET_ADDRSTRLEN];

	mmc_error_set("cannot set up a socket for %s:%u on %s: %s",
		      inet_ntop(AF_INET, &address->sin_addr, text,
				sizeof(text)),
		      ntohs(address->sin_port), udp->options.interface.name,
		      strerror(errno));
	return rv;
}

/* Binds a socket to `address`; if that has no port, to one of the option `ports`. */
static int bind_socket(const struct mmc_udp *udp, int fd,
		       const struct sockaddr_in *address)
{
	if (address->sin_port == 0)
		return mmc_udp_bind_within(fd, address, &udp->options.ports);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	return explain(udp, address);
}

/*
 * Opens the endpoint's next socket, binds it as bind_socket() does, and has epoll watch
 * it. Only the socket of a group has a port in `address`.
 */
static int open_socket(struct mmc_udp *udp, const struct sockaddr_in *address)
{
	struct epoll_event watch = {
		.events = EPOLLIN,
		.data.u32 = udp->nsockets,
	};
	int fd, rv;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		mmc_error_set("cannot open a socket: %s", strerror(errno));
		return -MMC_EIO;
	}
	if (configure(udp, fd, address->sin_port != 0) != 0)
		rv = explain(udp, address);
	else
		rv = bind_socket(udp, fd, address);
	if (rv == 0 && epoll_ctl(udp->epoll_fd, EPOLL_CTL_ADD, fd, &watch) != 0)
		rv = explain(udp, address);
	if (rv == 0)
		udp->sockets[udp->nsockets++].fd = fd;
	else
		close(fd);
	return rv;
}

/* Returns the port that a socket is bound to, or 0 if that cannot be found out. */
static uint16_t bound_port(int fd)
{
	struct sockaddr_in address = { .sin_port = 0 };
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return 0;
	return ntohs(address.sin_port);
}

/*
 * Opens the listener. It is watched edge-triggered, so that a connection that cannot be
 * accepted wakes the process only once.
 */
static int open_listener(struct mmc_udp *udp, const struct sockaddr_in *address)
{
	struct epoll_event watch = {
		.events = EPOLLIN | EPOLLET,
		.data.u32 = MMC_UDP_WATCH_LISTENER,
	};
	int rv = mmc_udp_listener_open(
		&udp->listener, address, &udp->options.ports,
		LISTENER_QUEUE_RANKS * udp->options.nranks);

	if (rv == 0 && epoll_ctl(udp->epoll_fd, EPOLL_CTL_ADD, udp->listener.fd,
				 &watch) != 0) {
		mmc_error_set("cannot watch the listening socket: %s",
			      strerror(errno));
		rv = -MMC_EIO;
	}
	return rv;
}

int mmc_udp_open_sockets(struct mmc_udp *udp)
{
	const struct mmc_udp_options *options = &udp->options;
	uint32_t ip = options->interface.address;
	struct sockaddr_in address = mmc_udp_socket_address(ip, 0);
	int rv = 0;

	udp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	mmc_udp_inquiries_init(&udp->inquiries, udp->epoll_fd,
			       MMC_UDP_WATCH_INQUIRIES);
	for (unsigned i = 0; i < MMC_UDP_GROUP0 && rv == 0; i++)
		rv = open_socket(udp, &address);
	if (rv == 0)
		rv = open_listener(udp, &address);
	if (rv < 0)
		return rv;
	udp->own = (struct mmc_udp_address){
		.rank = options->rank,
		.ip = ip,
		.control_port = bound_port(udp->sockets[MMC_UDP_CONTROL].fd),
		.data_port = bound_port(udp->sockets[MMC_UDP_DATA].fd),
		.listener_port = udp->listener.port,
	};
	for (unsigned i = 0;
	     i < options->nsubgroups && rv == 0 && !options->pair; i++) {
		udp->groups[i] = mmc_udp_socket_address(options->group + i,
							options->port);
		rv = open_socket(udp, &udp->groups[i]);
	}
	return rv;
}

/* ---- joining ------------------------------------------------------------- */

/* Sets the error's text from errno; `what` could not be done. Returns -MMC_EIO. */
static int explain_group(const struct mmc_udp *udp, unsigned subgroup,
			 const char *what)
{
	char text[INET_ADDRSTRLEN];

	mmc_error_set("cannot %s %s on %s: %s", what,
		      inet_ntop(AF_INET, &udp->groups[subgroup].sin_addr, text,
				sizeof(text)),
		      udp->options.interface.name, strerror(errno));
	return -MMC_EIO;
}

static int join(const struct mmc_udp *udp, unsigned socket, unsigned subgroup)
{
	struct ip_mreqn request = {
		.imr_multiaddr = udp->groups[subgroup].sin_addr,
		.imr_address.s_addr = htonl(udp->options.interface.address),
	};

	if (setsockopt(udp->sockets[socket].fd, IPPROTO_IP, IP_ADD_MEMBERSHIP,
		       &request, sizeof(request)) == 0)
		return 0;
	return explain_group(udp, subgroup, "join");
}

/*
 * Opens a receive socket of a subgroup for each other rank, whose receive buffer only
 * that rank's multicasts fill. A socket is connected to its source before it joins the
 * group, so that it never receives a datagram from another source.
 */
static int join_sources(struct mmc_udp *udp, unsigned subgroup)
{
	for (uint32_t rank = 0; rank < udp->options.nranks; rank++) {
		const struct sockaddr *source =
			(const struct sockaddr *)&udp->data[rank];
		unsigned socket = udp->nsockets;
		int rv;

		if (rank == udp->options.rank)
			continue;
		rv = open_socket(udp, &udp->groups[subgroup]);
		if (rv < 0)
			return rv;
		if (connect(udp->sockets[socket].fd, source,
			    sizeof(udp->data[rank])) != 0)
			return explain_group(udp, subgroup,
					     "hear a single source of");
		rv = join(udp, socket, subgroup);
		if (rv < 0)
			return rv;
	}
	return 0;
}

/*
 * Keeps this rank's own multicasts out of a subgroup's first socket. Copies of them
 * would take room in the receive buffer that no window accounts for: windows follow the
 * progress of the other ranks, which does not depend on when this rank reads its
 * copies. If each other rank has a socket of its own, keeps out all ranks, so that the
 * first socket only receives from strangers.
 */
static int refuse_known(const struct mmc_udp *udp, unsigned subgroup)
{
	int fd = udp->sockets[MMC_UDP_GROUP0 + subgroup].fd;
	struct mmc_udp_filter filter = { .samples = false };

	mmc_udp_refuse_known(udp, &filter);
	/* Copies that come in spite of a kernel without filters are dropped by poll(). */
	if (mmc_udp_filter(fd, &filter) == 0 ||
	    !mmc_udp_has_sources(&udp->options))
		return 0;
	return explain_group(udp, subgroup, "filter the strangers of");
}

/* Returns the subgroup of a socket whose index is MMC_UDP_GROUP0 or more. */
static unsigned subgroup_of(const struct mmc_udp *udp, unsigned socket)
{
	unsigned nsubgroups = udp->options.nsubgroups;
	unsigned at = socket - MMC_UDP_GROUP0;

	return at < nsubgroups ? at
			       : (at - nsubgroups) / (udp->options.nranks - 1);
}

/* Hands the subgroups' sockets over to workers, and starts these. */
static int start_workers(struct mmc_udp *udp)
{
	int rv = mmc_udp_workers_open(&udp->workers, udp->options.nsubgroups,
				      udp->epoll_fd, MMC_UDP_WATCH_WORKERS);

	for (unsigned i = MMC_UDP_GROUP0; i < udp->nsockets && rv == 0; i++) {
		int fd = udp->sockets[i].fd;

		epoll_ctl(udp->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		rv = mmc_udp_workers_assign(&udp->workers, subgroup_of(udp, i),
					    fd);
	}
	return rv == 0 ? mmc_udp_workers_start(&udp->workers) : rv;
}

int mmc_udp_join_groups(struct mmc_udp *udp)
{
	for (unsigned i = 0; i < udp->options.nsubgroups; i++) {
		int rv = refuse_known(udp, i);

		if (rv == 0 && mmc_udp_has_sources(&udp->options))
			rv = join_sources(udp, i);
		if (rv == 0)
			rv = join(udp, MMC_UDP_GROUP0 + i, i);
		if (rv < 0)
			return rv;
	}
	udp->joined = true;
	return udp->options.workers ? start_workers(udp) : 0;
}

/* ---- buffers ------------------------------------------------------------- */

/*
 * The most that Linux charges a receive buffer for a datagram: a block of memory whose
 * length is a power of two, in which the kernel's own data follow the datagram, and a
 * descriptor of the block (struct sk_buff).
 */
#define BLOCK_BYTES_MIN 512
#define BLOCK_OWN_BYTES 448
#define DESCRIPTOR_BYTES 320

static uint64_t charge_bytes(uint64_t datagram_bytes)
{
	uint64_t block_bytes = BLOCK_BYTES_MIN;

	while (block_bytes < datagram_bytes + BLOCK_OWN_BYTES)
		block_bytes *= 2;
	return block_bytes + DESCRIPTOR_BYTES;
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
	/* The kernel may still charge a quarter for datagrams that were read. */
	nchunks = least_bytes * 3 / 4 / charge_bytes(datagram_bytes);
	/* As a margin, payload never counts for more than 10 / 23 of the buffer. */
	if (nchunks * chunk_bytes * 23 > least_bytes * 10)
		nchunks = least_bytes * 10 / 23 / chunk_bytes;
	return (uint32_t)((nchunks > 0 ? nchunks : 1) * chunk_bytes);
}
