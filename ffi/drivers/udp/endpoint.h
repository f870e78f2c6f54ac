/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint of the UDP driver consists of; private to the driver. */
#ifndef MMC_DRIVERS_UDP_ENDPOINT_H
#define MMC_DRIVERS_UDP_ENDPOINT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/codec.h"
#include "drivers/udp/peers.h"
#include "drivers/udp/udp.h"

/* The order of an endpoint's sockets; subgroup i has MMC_UDP_GROUP0 + i. */
enum {
	MMC_UDP_CONTROL,
	MMC_UDP_DATA,
	MMC_UDP_GROUP0,
};

struct mmc_udp {
	struct mmc_endpoint endpoint;
	struct mmc_udp_options options;
	struct pollfd sockets[MMC_ENDPOINT_FDS_MAX];
	unsigned nsockets;
	unsigned turn; /* which socket after control poll() serves first */
	struct mmc_udp_address own;

	struct mmc_udp_peers peers;
	struct sockaddr_in *control; /* where each rank takes control */
	struct sockaddr_in *data;    /* and where it takes repairs */
	struct sockaddr_in groups[MMC_UDP_SUBGROUPS_MAX];

	/* Received datagrams lie in slots of `staging`; see accept_batch(). */
	uint8_t *staging;
	size_t slot_bytes;
	uint8_t *slots[MMC_UDP_BATCH];
	struct mmsghdr rx[MMC_UDP_BATCH];
	struct iovec rx_pieces[MMC_UDP_BATCH];
	struct sockaddr_in rx_from[MMC_UDP_BATCH];

	struct mmsghdr tx[MMC_UDP_BATCH];
	struct iovec tx_pieces[MMC_UDP_BATCH][2]; /* head and body */
};

static inline struct sockaddr_in mmc_udp_socket_address(uint32_t ip,
							uint32_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(ip),
		.sin_port = htons((uint16_t)port),
	};
}

/* What surrounds a chunk on its way: IPv4, UDP, our header and trailer. */
static inline uint32_t mmc_udp_around_bytes(enum mmc_checksum checksum)
{
	return 28 + MMC_HEADER_BYTES +
	       (checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0);
}

/*
 * Opens and binds the sockets and fills in `own`. Returns 0 or -MMC_EIO; what
 * is open then is in `sockets` all the same.
 */
int mmc_udp_open_sockets(struct mmc_udp *udp);

/*
 * How many bytes, in full chunks, the smallest receive buffer holds for
 * certain; it always holds one.
 */
uint32_t mmc_udp_safe_bytes(const struct mmc_udp *udp);

int mmc_udp_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax);

int mmc_udp_send(struct mmc_endpoint *endpoint,
		 const struct mmc_parcel *parcels, unsigned nparcels);

#endif
