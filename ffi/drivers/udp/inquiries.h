/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the kernels of silent ranks whether the processes there exist. For this, a TCP
 * connection to a silent rank's listener is opened, and kept for as long as the rank is
 * silent. Each question is a byte that is sent over it: if the kernel there
 * acknowledges the byte, the process exists, even if it is stopped.
 *
 * If the connection is refused, the process has ended. If it is closed or breaks, that
 * proves nothing by itself, and it is opened again. A running process closes
 * connections as it accepts them; a stopped one leaves them in its accept queue.
 */
#ifndef MMC_DRIVERS_UDP_INQUIRIES_H
#define MMC_DRIVERS_UDP_INQUIRIES_H

#include <netinet/in.h>

#include "drivers/driver.h"

/* The least time between two attempts to connect to one rank. */
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
	bool ended; /* the connection has ended, and was not opened again */
	uint64_t asked_ns;     /* when the peer was last asked about */
	uint64_t connected_ns; /* when a connection was last begun */
	/* The latest answer, if it has not been reported yet. */
	enum mmc_udp_finding finding;
};

struct mmc_udp_inquiries {
	int epoll_fd; /* watches the connections */
	uint32_t tag; /* by which epoll reports the connections */
	struct mmc_udp_inquiry *items;
	uint32_t count; /* of `items` */
	uint32_t nmax;	/* how many items there is room for */
	uint32_t
		nfound; /* items with a finding that has not been reported yet */
	/* When to reopen a connection that is still wanted; MMC_NEVER_NS if none has to. */
	uint64_t due_ns;
};

/*
 * Initializes the structure, without inquiries. `epoll_fd` will watch connections, and
 * report them by `tag`.
 */
void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag);

/* Ends all inquiries, and closes their connections. */
void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries);

/*
 * Asks about `peer`, whose listener is at `address`. Call this repeatedly for as long
 * as the peer is silent. If memory or descriptors have run out, nothing is found out.
 */
void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns);

/* Ends the inquiry about `peer`, if there is one: the peer is not silent any more. */
void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries,
			     uint32_t peer);

/*
 * Looks at the connections: finds out which ranks are alive or gone, and opens again
 * the connections that have ended. Call this when epoll has reported a connection, and
 * at `due_ns`. `addresses` has the listener's address of each rank.
 */
void mmc_udp_inquiries_check(struct mmc_udp_inquiries *inquiries,
			     const struct sockaddr_in *addresses,
			     uint64_t now_ns);

/* Writes events for new findings, `nmax` at most. Returns how many. */
unsigned mmc_udp_inquiries_take(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax);

#endif
