/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint of the UDP driver consists of; private to the driver. */
#ifndef MMC_DRIVERS_UDP_ENDPOINT_H
#define MMC_DRIVERS_UDP_ENDPOINT_H

#include "core/wire/header.h"
#include "drivers/udp/batch.h"
#include "drivers/udp/inquiries.h"
#include "drivers/udp/listener.h"
#include "drivers/udp/peers.h"
#include "drivers/udp/staging.h"
#include "drivers/udp/udp.h"

/*
 * The order of an endpoint's sockets: subgroup i has MMC_UDP_GROUP0 + i, and
 * those that are connected to one source each come behind them.
 */
enum {
	MMC_UDP_CONTROL,
	MMC_UDP_DATA,
	MMC_UDP_GROUP0,
};

/* Tags of what epoll watches; a socket's tag is its index, below these. */
enum {
	MMC_UDP_WATCH_LISTENER = MMC_UDP_SOCKETS_MAX,
	MMC_UDP_WATCH_INQUIRIES,
};

struct mmc_udp_socket {
	int fd;
	bool readable; /* when last looked at, and not emptied since */
};

struct mmc_udp {
	struct mmc_endpoint endpoint;
	struct mmc_udp_options options;
	struct mmc_udp_socket sockets[MMC_UDP_SOCKETS_MAX];
	unsigned nsockets;
	unsigned turn; /* which socket behind control poll() serves first */
	int epoll_fd;  /* readable while a socket is */
	bool joined;
	struct mmc_udp_address own;

	struct mmc_udp_peers peers;
	struct sockaddr_in *control;   /* where each rank takes control */
	struct sockaddr_in *data;      /* and where it takes repairs */
	struct sockaddr_in *listeners; /* and where its kernel vouches for it */
	struct sockaddr_in groups[MMC_UDP_SUBGROUPS_MAX];

	/* Apart: data that waits to be taken holds no control up. */
	struct mmc_udp_staging control_staging;
	struct mmc_udp_staging data_staging;
	uint32_t longest_bytes; /* of the datagrams that ranks send */

	struct mmc_udp_batch batch;
	uint64_t
		down_ns; /* since when the interface seems down; 0: it does not */

	struct mmc_udp_listener listener;
	struct mmc_udp_inquiries inquiries;
	bool connecting; /* somebody does, to the listener */
	bool finding;	 /* a connection of an inquiry is ready */
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

/* Whether every other rank has a receive socket of its own. */
static inline bool mmc_udp_has_sources(const struct mmc_udp_options *options)
{
	return options->nranks > 1 &&
	       options->nranks <= MMC_UDP_RANKS_APART_MAX &&
	       MMC_UDP_GROUP0 + options->nsubgroups * options->nranks <=
		       MMC_UDP_SOCKETS_MAX;
}

/*
 * Opens and binds the sockets and fills in `own`. Returns 0, -MMC_EADDRINUSE or
 * -MMC_EIO; what is open then is in `sockets` all the same.
 */
int mmc_udp_open_sockets(struct mmc_udp *udp);

/*
 * Joins the groups, and opens the sockets that take one source each if there
 * are to be some; the ranks' addresses are known. Returns 0 or -MMC_EIO.
 */
int mmc_udp_join_groups(struct mmc_udp *udp);

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
