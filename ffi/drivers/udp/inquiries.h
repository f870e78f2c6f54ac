/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the kernel of a silent rank's host whether the rank's process exists. An inquiry
 * opens a TCP connection to the rank's listener, and keeps it open for as long as the
 * rank is silent. Each question is one byte sent over the connection: if the other
 * kernel acknowledges the byte, the process exists, even if it is stopped.
 *
 * A process has ended if its kernel refuses the connection. But if a connection is
 * established and then closed, the process may or may not have ended: a running process
 * closes every connection as soon as it accepts it, and when a process ends, its kernel
 * resets the connections that the process has not accepted. (A stopped process accepts
 * none.) So the inquiry connects again, and only a refusal then shows that the process
 * has ended.
 */
#ifndef MMC_DRIVERS_UDP_INQUIRIES_H
#define MMC_DRIVERS_UDP_INQUIRIES_H

#include <netinet/in.h>

#include "drivers/driver.h"

/* The least time from one attempt to connect to a rank until the next. */
#define MMC_UDP_RECONNECT_NS (100 * MMC_MS_NS)

enum mmc_udp_finding {
	MMC_UDP_FOUND_NOTHING, /* nothing that was not reported already */
	MMC_UDP_FOUND_ALIVE,   /* the peer's process exists */
	MMC_UDP_FOUND_GONE,    /* the peer's process has ended */
};

struct mmc_udp_inquiry {
	uint32_t peer;
	int fd; /* -1: there is no connection */
	bool established;
	/* Whether an established connection has ended and was not opened again yet. */
	bool ended;
	/* When mmc_udp_inquiries_ask() was last called for this peer. */
	uint64_t asked_ns;
	uint64_t connected_ns; /* when the last attempt to connect began */
	/* The latest finding, until it is reported. */
	enum mmc_udp_finding finding;
};

struct mmc_udp_inquiries {
	int epoll_fd; /* watches the connections */
	uint32_t tag; /* which epoll reports with an event of any connection */
	struct mmc_udp_inquiry *items;
	uint32_t count;	 /* how many `items` are in use */
	uint32_t nmax;	 /* how many `items` there is room for */
	uint32_t nfound; /* how many `items` have an unreported finding */
	/* When mmc_udp_inquiries_check() is to reopen a connection, or MMC_NEVER_NS. */
	uint64_t due_ns;
};

/*
 * Initializes `inquiries`, which has none yet. The epoll instance `epoll_fd` will watch
 * the connections of all inquiries, and report `tag` when something happens to one.
 */
void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag);

/* Ends all inquiries, and closes their connections. */
void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries);

/*
 * Asks about `peer`, whose listener is at `address`. Call this repeatedly for as long
 * as the peer is silent. If memory or descriptors have run out, nothing is asked, and a
 * later call tries again.
 */
void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns);

/*
 * Records that `peer` was heard. Ends the inquiry about it, if there is one, and drops
 * its unreported finding.
 */
void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries,
			     uint32_t peer);

/*
 * Looks at all connections: finds out which peers exist or have ended, and reopens
 * connections that have ended, if their peers were asked about in the last two seconds.
 * Call this when epoll has reported a connection, and at `due_ns`. `addresses` has the
 * address of each rank's listener.
 */
void mmc_udp_inquiries_check(struct mmc_udp_inquiries *inquiries,
			     const struct sockaddr_in *addresses,
			     uint64_t now_ns);

/*
 * Writes an event for each finding that has not been reported yet, but at most `nmax`.
 * Returns the number of events.
 */
unsigned mmc_udp_inquiries_take(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax);

#endif
