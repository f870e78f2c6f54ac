/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/wire/header.h"
#include "drivers/udp/endpoint.h"
#include "drivers/udp/linger.h"
#include "support/bits.h"
#include "support/error.h"

static struct mmc_udp *udp_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_udp *)endpoint;
}

static uint64_t udp_now_ns(struct mmc_endpoint *endpoint)
{
	struct timespec now;

	(void)endpoint;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MMC_S_NS + (uint64_t)now.tv_nsec;
}

/* ---- opening ------------------------------------------------------------- */

/*
 * Returns the most bytes of a packet on this interface, headers included: an IPv4
 * packet is no longer than 65535 bytes, even if the MTU is.
 */
static uint32_t packet_bytes_max(const struct mmc_udp_options *options)
{
	uint32_t mtu_bytes = options->interface.mtu_bytes;

	return mtu_bytes < UINT16_MAX ? mtu_bytes : UINT16_MAX;
}

static int check_options(const struct mmc_udp_options *options)
{
	uint32_t last = options->group + options->nsubgroups - 1;
	uint32_t most_bytes = packet_bytes_max(options);
	uint32_t around_bytes = mmc_udp_around_bytes(options->checksum);

	if (options->nranks == 0 || options->nranks >= MMC_PEER_UNKNOWN ||
	    options->rank >= options->nranks)
		mmc_error_set("cannot be rank %u of %u ranks", options->rank,
			      options->nranks);
	else if (options->pair && options->nranks != 2)
		mmc_error_set("a pair has two ranks, not %u", options->nranks);
	else if (options->nsubgroups == 0 ||
		 options->nsubgroups > MMC_UDP_SUBGROUPS_MAX)
		mmc_error_set("cannot use %u subgroups; use 1 to %u",
			      options->nsubgroups, MMC_UDP_SUBGROUPS_MAX);
	else if (options->group >> 28 != 0xe || last >> 28 != 0xe)
		mmc_error_set(
			"groups %#x to %#x are not IPv4 multicast addresses",
			options->group, last);
	else if (options->port == 0 || options->port > UINT16_MAX)
		mmc_error_set("port %u is out of range; use 1 to 65535",
			      options->port);
	else if (options->ports.count > 0 &&
		 (options->ports.first == 0 ||
		  options->ports.first > UINT16_MAX ||
		  options->ports.count > UINT16_MAX + 1 - options->ports.first))
		mmc_error_set(
			"%u ports from %u on do not all lie in 1 to 65535",
			options->ports.count, options->ports.first);
	else if (options->ttl > UINT8_MAX)
		mmc_error_set("TTL %u is out of range; use 0 to 255",
			      options->ttl);
	else if (options->chunk_bytes == 0 ||
		 options->chunk_bytes > most_bytes ||
		 options->chunk_bytes + around_bytes > most_bytes)
		mmc_error_set("chunks of %u bytes with %u bytes of headers do "
			      "not fit into the MTU of %s, %u bytes",
			      options->chunk_bytes, around_bytes,
			      options->interface.name,
			      options->interface.mtu_bytes);
	else
		return 0;
	return -MMC_EINVAL;
}

/* Returns how many full chunks a train can have; 0 if no two fit into one. */
static uint32_t train_datagrams(const struct mmc_udp *udp)
{
	const struct mmc_udp_options *options = &udp->options;
	const struct mmc_udp_segmentation *longest = &udp->batch.longest;
	uint32_t datagram_bytes = mmc_udp_around_bytes(options->checksum) -
				  MMC_UDP_IP_HEADERS_BYTES +
				  options->chunk_bytes;
	uint32_t count = mmc_min_u32(longest->datagrams,
				     longest->payload_bytes / datagram_bytes);

	return count > 1 ? count : 0;
}

static int allocate(struct mmc_udp *udp)
{
	size_t nranks = udp->options.nranks;
	uint32_t longest_bytes = MMC_HEADER_BYTES + udp->options.chunk_bytes;

	uint32_t message_bytes =
		MMC_MESSAGE_BYTES_MAX + udp->options.seal_bytes;

	if (longest_bytes < message_bytes)
		longest_bytes = message_bytes;
	if (udp->options.checksum == MMC_CHECKSUM_FULL)
		longest_bytes += MMC_CRC_BYTES;
	udp->longest_bytes = longest_bytes;
	udp->control = calloc(nranks, sizeof(*udp->control));
	udp->data = calloc(nranks, sizeof(*udp->data));
	udp->listeners = calloc(nranks, sizeof(*udp->listeners));
	if (udp->control == NULL || udp->data == NULL ||
	    udp->listeners == NULL ||
	    mmc_udp_staging_init(&udp->control_staging, udp->longest_bytes) <
		    0 ||
	    mmc_udp_staging_init(&udp->data_staging, MMC_UDP_TRAIN_BYTES) < 0)
		return -MMC_ENOMEM;
	return mmc_udp_peers_init(&udp->peers, udp->options.nranks);
}

/* Keeps the groups joined for a while, since this process may soon use them again. */
static void linger(const struct mmc_udp *udp)
{
	uint64_t now_ns = udp_now_ns(NULL);

	mmc_udp_linger_sweep(now_ns);
	for (unsigned i = 0; i < udp->options.nsubgroups && udp->joined; i++)
		mmc_udp_linger(udp->options.interface.address,
			       udp->options.group + i, now_ns);
}

static void udp_close(struct mmc_endpoint *endpoint)
{
	struct mmc_udp *udp = udp_of(endpoint);

	linger(udp);
	mmc_udp_workers_close(&udp->workers);
	mmc_udp_inquiries_destroy(&udp->inquiries);
	mmc_udp_listener_close(&udp->listener);
	/* Closing a socket also leaves its groups. */
	for (unsigned i = 0; i < udp->nsockets; i++)
		close(udp->sockets[i].fd);
	if (udp->epoll_fd >= 0)
		close(udp->epoll_fd);
	mmc_udp_peers_destroy(&udp->peers);
	mmc_udp_staging_destroy(&udp->data_staging);
	mmc_udp_staging_destroy(&udp->control_staging);
	free(udp->listeners);
	free(udp->data);
	free(udp->control);
	free(udp);
}

/* ---- connecting ---------------------------------------------------------- */

static void udp_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	mmc_udp_address_encode(address, &udp_of(endpoint)->own);
}

static bool is_own(const struct mmc_udp *udp,
		   const struct mmc_udp_address *address)
{
	return address->ip == udp->own.ip &&
	       address->control_port == udp->own.control_port &&
	       address->data_port == udp->own.data_port &&
	       address->listener_port == udp->own.listener_port;
}

static int add_rank(struct mmc_udp *udp, uint32_t rank, const uint8_t *bytes)
{
	struct mmc_udp_address address;

	if (mmc_udp_address_decode(&address, bytes) < 0 ||
	    address.rank != rank) {
		mmc_error_set(
			"rank %u did not publish a UDP address of its own",
			rank);
		return -MMC_EINVAL;
	}
	if (rank == udp->options.rank && !is_own(udp, &address)) {
		mmc_error_set("the address given for rank %u is not its own",
			      rank);
		return -MMC_EINVAL;
	}
	if (mmc_udp_peers_add(&udp->peers, address.ip, address.control_port,
			      rank) < 0 ||
	    mmc_udp_peers_add(&udp->peers, address.ip, address.data_port,
			      rank) < 0) {
		mmc_error_set("rank %u has the same address as another rank",
			      rank);
		return -MMC_EINVAL;
	}
	udp->control[rank] =
		mmc_udp_socket_address(address.ip, address.control_port);
	udp->data[rank] = mmc_udp_socket_address(address.ip, address.data_port);
	udp->listeners[rank] =
		mmc_udp_socket_address(address.ip, address.listener_port);
	return 0;
}

static int udp_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	struct mmc_udp *udp = udp_of(endpoint);

	for (uint32_t rank = 0; rank < udp->options.nranks; rank++) {
		int rv = add_rank(udp, rank,
				  addresses +
					  (size_t)rank * MMC_UDP_ADDRESS_BYTES);

		if (rv < 0)
			return rv;
	}
	return udp->options.pair ? 0 : mmc_udp_join_groups(udp);
}

/* ---- the driver ---------------------------------------------------------- */

static unsigned udp_fds(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol)
{
	const struct mmc_udp *udp = udp_of(endpoint);

	fds[0] = udp->sockets[MMC_UDP_CONTROL].fd;
	fds[1] = udp->epoll_fd;
	*ncontrol = 1;
	return 2;
}

/* Returns 0, which means now, if the last poll() had no room for everything found. */
static uint64_t udp_deadline_ns(struct mmc_endpoint *endpoint)
{
	const struct mmc_udp *udp = udp_of(endpoint);

	if (mmc_udp_staging_holds(&udp->control_staging) ||
	    mmc_udp_staging_holds(&udp->data_staging) ||
	    mmc_udp_workers_hold(&udp->workers) || udp->inquiries.nfound > 0)
		return 0;
	return udp->inquiries.due_ns;
}

static bool udp_arm(struct mmc_endpoint *endpoint)
{
	return mmc_udp_workers_arm(&udp_of(endpoint)->workers);
}

static void udp_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	struct mmc_udp *udp = udp_of(endpoint);

	mmc_udp_inquiries_ask(&udp->inquiries, peer, &udp->listeners[peer],
			      udp_now_ns(endpoint));
}

static const struct mmc_driver driver = {
	.name = "udp",
	.now_ns = udp_now_ns,
	.address = udp_address,
	.connect = udp_connect,
	.poll = mmc_udp_poll,
	.send = mmc_udp_send,
	.inquire = udp_inquire,
	.fds = udp_fds,
	.arm = udp_arm,
	.deadline_ns = udp_deadline_ns,
	.guard = mmc_udp_guard,
	.close = udp_close,
};

int mmc_udp_open(const struct mmc_udp_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint)
{
	int rv = check_options(options);
	struct mmc_udp *udp;

	if (rv < 0)
		return rv;
	udp = calloc(1, sizeof(*udp));
	if (udp == NULL)
		return -MMC_ENOMEM;
	udp->driver = driver;
	if (!options->workers)
		udp->driver.arm = NULL;
	udp->endpoint.driver = &udp->driver;
	udp->endpoint.address_bytes = MMC_UDP_ADDRESS_BYTES;
	udp->endpoint.has_buffer_per_source = mmc_udp_has_sources(options);
	udp->options = *options;
	udp->batch.cutting = true;
	udp->batch.longest = mmc_udp_segmentation_of(options->interface.name);
	udp->endpoint.train_datagrams = train_datagrams(udp);
	udp->epoll_fd = -1;
	udp->listener.fd = -1;
	mmc_udp_linger_sweep(udp_now_ns(NULL));
	rv = allocate(udp);
	if (rv == 0)
		rv = mmc_udp_open_sockets(udp);
	if (rv < 0) {
		udp_close(&udp->endpoint);
		return rv;
	}
	*buffer_bytes = mmc_udp_safe_bytes(udp);
	if (mmc_udp_has_sources(options))
		*buffer_bytes *= options->nranks - 1;
	*endpoint = &udp->endpoint;
	return 0;
}
