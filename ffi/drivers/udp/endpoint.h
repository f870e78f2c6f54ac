/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP endpoint as the files of this driver see it. */
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
 * Indices of an endpoint's sockets. Subgroup i has MMC_UDP_GROUP0 + i; the sockets that
 * are connected to one source each follow.
 */
enum {
	MMC_UDP_CONTROL,
	MMC_UDP_DATA,
	MMC_UDP_GROUP0,
};

/*
 * Tags of what epoll watches. A socket's tag is its index, which is below the others.
 */
enum {
	MMC_UDP_WATCH_LISTENER = MMC_UDP_SOCKETS_MAX,
	MMC_UDP_WATCH_INQUIRIES,
};

struct mmc_udp_socket {
	int fd;
	bool readable; /* at the last look, and not emptied since */
};

struct mmc_udp {
	struct mmc_endpoint endpoint;
	struct mmc_udp_options options;
	struct mmc_udp_socket sockets[MMC_UDP_SOCKETS_MAX];
	unsigned nsockets;
	unsigned turn; /* which socket after control is polled first */
	int epoll_fd;  /* readable while a socket is */
	bool joined;
	struct mmc_udp_address own;

	struct mmc_udp_peers peers;
	struct sockaddr_in *control;   /* where each rank receives control */
	struct sockaddr_in *data;      /* where each rank receives repairs */
	struct sockaddr_in *listeners; /* where its kernel vouches for it */
	struct sockaddr_in groups[MMC_UDP_SUBGROUPS_MAX];

	/* Separate, so that data that waits to be taken does not hold up control. */
	struct mmc_udp_staging control_staging;
	struct mmc_udp_staging data_staging;
	uint32_t longest_bytes; /* the longest datagram that ranks send */

	struct mmc_udp_batch batch;
	uint64_t down_ns; /* since when the interface seems down, or 0 */

	struct mmc_udp_listener listener;
	struct mmc_udp_inquiries inquiries;
	bool connecting; /* a connection to the listener waits */
	bool finding;	 /* a connection of an inquiry became ready */
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

/* Returns the bytes that surround a chunk: IPv4, UDP, our header and trailer. */
static inline uint32_t mmc_udp_around_bytes(enum mmc_checksum checksum)
{
	return 28 + MMC_HEADER_BYTES +
	       (checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0);
}

/* Returns whether there is a receive socket for each other rank. */
static inline bool mmc_udp_has_sources(const struct mmc_udp_options *options)
{
	return options->nranks > 1 &&
	       options->nranks <= MMC_UDP_RANKS_APART_MAX &&
	       MMC_UDP_GROUP0 + options->nsubgroups * options->nranks <=
		       MMC_UDP_SOCKETS_MAX;
}

/*
 * Opens and binds the sockets and fills in `own`. Returns 0, -MMC_EADDRINUSE or
 * -MMC_EIO; `sockets` holds those that are open even after an error.
 */
int mmc_udp_open_sockets(struct mmc_udp *udp);

/*
 * Joins the groups, and opens the sockets for single sources where the options want
 * them. The ranks' addresses must be known. Returns 0 or -MMC_EIO.
 */
int mmc_udp_join_groups(struct mmc_udp *udp);

/*
 * Returns how many bytes, in full chunks, the smallest receive buffer holds for
 * certain; at least one chunk.
 */
uint32_t mmc_udp_safe_bytes(const struct mmc_udp *udp);

int mmc_udp_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax);

int mmc_udp_send(struct mmc_endpoint *endpoint,
		 const struct mmc_parcel *parcels, unsigned nparcels);

#endif
