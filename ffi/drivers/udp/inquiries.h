/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the kernels of silent ranks whether their processes exist: by a TCP connection
 * to each rank's listener, which is kept while the rank is silent. Every question on it
 * is a byte that the kernel there acknowledges.
 *
 * A refused connection means that the process has ended. A connection that is closed,
 * or breaks, means nothing by itself: it is made again. An accept queue keeps what a
 * stopped process has not accepted, so that happens only after some time.
 */
#ifndef MMC_DRIVERS_UDP_INQUIRIES_H
#define MMC_DRIVERS_UDP_INQUIRIES_H

#include <netinet/in.h>

#include "drivers/driver.h"

/* The least time between two connections to one rank. */
#define MMC_UDP_RECONNECT_NS (100 * MMC_MS_NS)

enum mmc_udp_finding {
	MMC_UDP_FOUND_NOTHING,
	MMC_UDP_FOUND_ALIVE,
	MMC_UDP_FOUND_GONE,
};

struct mmc_udp_inquiry {
	uint32_t peer;
	int fd; /* -1 if not connected */
	bool established;
	bool ended; /* its connection has ended, and was not made again */
	uint64_t asked_ns;	      /* when the peer was last asked about */
	uint64_t connected_ns;	      /* when a connection was last begun */
	enum mmc_udp_finding finding; /* not reported yet */
};

struct mmc_udp_inquiries {
	int epoll_fd; /* watches the connections */
	uint32_t tag; /* the epoll data of the connections */
	struct mmc_udp_inquiry *items;
	uint32_t count;
	uint32_t nmax;
	uint32_t nfound; /* findings that are not reported yet */
	uint64_t due_ns; /* when a connection that has ended is made again */
};

/*
 * Initializes `inquiries` without any; `epoll_fd` will watch the connections, under
 * `tag`.
 */
void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag);

void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries);

/* Asks about `peer`, whose listener is at `address`. */
void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns);

/* Ends the inquiry about `peer`, which was heard. */
void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries,
			     uint32_t peer);

/*
 * Takes in what has become of the connections. Must be called after one has become
 * ready, and at `due_ns`; `addresses` are those of all ranks' listeners.
 */
void mmc_udp_inquiries_look(struct mmc_udp_inquiries *inquiries,
			    const struct sockaddr_in *addresses,
			    uint64_t now_ns);

/* Writes events of what was found, `nmax` at most. Returns how many. */
unsigned mmc_udp_inquiries_poll(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax);

#endif
