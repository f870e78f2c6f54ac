/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP endpoint's structure, and the functions that the driver's files share. */
#ifndef MMC_DRIVERS_UDP_ENDPOINT_H
#define MMC_DRIVERS_UDP_ENDPOINT_H

#include "core/wire/header.h"
#include "drivers/udp/batch.h"
#include "drivers/udp/filter.h"
#include "drivers/udp/inquiries.h"
#include "drivers/udp/listener.h"
#include "drivers/udp/peers.h"
#include "drivers/udp/staging.h"
#include "drivers/udp/udp.h"
#include "drivers/udp/workers.h"

/*
 * The indices of an endpoint's sockets. Subgroup i has MMC_UDP_GROUP0 + i. The sockets
 * that are each connected to a single source follow, if there are any.
 */
enum {
	MMC_UDP_CONTROL,
	MMC_UDP_DATA,
	MMC_UDP_GROUP0,
};

/*
 * The tags by which epoll tells apart what it watches. A socket's tag is its index,
 * which is below these.
 */
enum {
	MMC_UDP_WATCH_LISTENER = MMC_UDP_SOCKETS_MAX,
	MMC_UDP_WATCH_INQUIRIES,
	MMC_UDP_WATCH_WORKERS,
};

struct mmc_udp_socket {
	int fd;
	bool readable; /* epoll has reported it, and it was not emptied since */
};

struct mmc_udp {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver; /* the functions that the options ask for */
	struct mmc_udp_options options;
	struct mmc_udp_socket sockets[MMC_UDP_SOCKETS_MAX];
	unsigned nsockets;
	/* The socket that is polled first, counted from MMC_UDP_DATA on. */
	unsigned next_socket;
	int epoll_fd;	   /* readable while any of the sockets is */
	uint64_t nwaits;   /* system calls that asked it */
	unsigned nunasked; /* calls of poll() since then */
	bool joined;	   /* whether the groups were joined */
	struct mmc_udp_address own;

	struct mmc_udp_peers peers;
	struct sockaddr_in *control;   /* where each rank receives control */
	struct sockaddr_in *data;      /* where each rank receives repairs */
	struct sockaddr_in *listeners; /* each rank's TCP listener */
	struct sockaddr_in groups[MMC_UDP_SUBGROUPS_MAX];

	/* Control has its own: data that waits for a poll must not hold it up. */
	struct mmc_udp_staging control_staging;
	struct mmc_udp_staging data_staging;
	uint32_t longest_bytes; /* the longest datagram that ranks send */
	struct mmc_udp_workers workers; /* if any, they receive the subgroups */

	struct mmc_udp_batch batch;
	/* When send() first found the interface down; 0 if it seems up. */
	uint64_t down_ns;

	struct mmc_udp_listener listener;
	struct mmc_udp_inquiries inquiries;
	bool connecting; /* a connection may wait to be accepted */
	bool finding;	 /* something has happened to an inquiry's connection */
};

/* Returns an address for socket calls; `ip` and `port` are in host order. */
static inline struct sockaddr_in mmc_udp_socket_address(uint32_t ip,
							uint32_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(ip),
		.sin_port = htons((uint16_t)port),
	};
}

/* The IPv4 header without options, and the UDP header. */
#define MMC_UDP_IP_HEADERS_BYTES (20 + 8)

/* Returns the bytes of a packet besides its chunk: all headers, and the CRC if any. */
static inline uint32_t mmc_udp_around_bytes(enum mmc_checksum checksum)
{
	return MMC_UDP_IP_HEADERS_BYTES + MMC_HEADER_BYTES +
	       (checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0);
}

/* Returns whether each subgroup has a receive socket for each other rank. */
static inline bool mmc_udp_has_sources(const struct mmc_udp_options *options)
{
	return options->nranks > 1 && !options->pair &&
	       options->nranks <= MMC_UDP_RANKS_APART_MAX &&
	       MMC_UDP_GROUP0 + options->nsubgroups * options->nranks <=
		       MMC_UDP_SOCKETS_MAX;
}

/*
 * Opens and binds the sockets and the listener, and fills in `own`. Returns 0,
 * -MMC_EADDRINUSE or -MMC_EIO. Even after an error, `sockets` has those that are open.
 */
int mmc_udp_open_sockets(struct mmc_udp *udp);

/*
 * Joins the groups, and opens the sockets for single sources if mmc_udp_has_sources().
 * The ranks' addresses must be known. Returns 0, -MMC_EADDRINUSE or -MMC_EIO.
 */
int mmc_udp_join_groups(struct mmc_udp *udp);

/* Has `filter` refuse the ranks that a subgroup's first socket does not hear. */
static inline void mmc_udp_refuse_known(const struct mmc_udp *udp,
					struct mmc_udp_filter *filter)
{
	bool all = mmc_udp_has_sources(&udp->options);

	filter->refused = all ? udp->data : &udp->data[udp->options.rank];
	filter->nrefused = all ? udp->options.nranks : 1;
}

/* The driver's guard(), as driver.h describes it. */
void mmc_udp_guard(struct mmc_endpoint *endpoint, const uint64_t *channels,
		   unsigned nchannels);

/*
 * Returns how many bytes of payload the smallest receive buffer is sure to hold, if
 * they arrive in full chunks; at least the length of one chunk.
 */
uint32_t mmc_udp_safe_bytes(const struct mmc_udp *udp);

/* The driver's poll() and send(), as driver.h and udp.h describe them. */
int mmc_udp_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax);

int mmc_udp_send(struct mmc_endpoint *endpoint,
		 const struct mmc_parcel *parcels, unsigned nparcels);

#endif
