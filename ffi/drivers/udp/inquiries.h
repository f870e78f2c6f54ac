/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the kernel of a silent rank's host whether the rank's process exists. An inquiry
 * opens a TCP connection to the rank's listener, and keeps the connection open for as
 * long as the rank is silent. Each question is one byte sent over the connection. If
 * the other kernel acknowledges the byte, the process exists, even if it is stopped.
 *
 * If the other kernel refuses the connection, the process has ended. If the connection
 * is established and then ends, the process may still exist: a running process accepts
 * every connection, and closes it at once. But the process may also have ended: its
 * kernel then reset the connections that the process had not accepted. (A stopped
 * process accepts none.) So the inquiry connects again. If that is refused, the process
 * has ended.
 */
#ifndef MMC_DRIVERS_UDP_INQUIRIES_H
#define MMC_DRIVERS_UDP_INQUIRIES_H

#include <netinet/in.h>

#include "drivers/driver.h"

/* The minimum time between two attempts to connect to the same rank. */
#define MMC_UDP_RECONNECT_NS (100 * MMC_MS_NS)

enum mmc_udp_finding {
	MMC_UDP_FOUND_NOTHING, /* nothing new */
	MMC_UDP_FOUND_ALIVE,   /* the peer's process exists */
	MMC_UDP_FOUND_GONE,    /* the peer's process has ended */
};

struct mmc_udp_inquiry {
	uint32_t peer;
	int fd; /* -1: there is no connection */
	bool established;
	/* An established connection has ended, and this rank has not tried to reopen it. */
	bool ended;
	/* When mmc_udp_inquiries_ask() was last called for this peer. */
	uint64_t asked_ns;
	uint64_t attempted_ns; /* when the last attempt to connect began */
	/* The latest finding, until it is reported. */
	enum mmc_udp_finding finding;
};

struct mmc_udp_inquiries {
	int epoll_fd; /* watches the connections */
	uint32_t tag; /* epoll returns it with each event of a connection */
	struct mmc_udp_inquiry *items;
	uint32_t count;	 /* how many `items` are in use */
	uint32_t nmax;	 /* how many `items` there is room for */
	uint32_t nfound; /* how many `items` have an unreported finding */
	/* When mmc_udp_inquiries_check() is to reopen a connection, or MMC_NEVER_NS. */
	uint64_t due_ns;
};

/*
 * Initializes `inquiries` without any inquiry. The epoll instance `epoll_fd` will watch
 * the connections of all inquiries. When something happens to one of them, the instance
 * reports `tag`.
 */
void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag);

/* Ends all inquiries, and closes their connections. */
void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries);

/*
 * Asks about `peer`, whose listener is at `address`. Call this repeatedly for as long
 * as the peer is silent. If memory or descriptors have run out, this call asks nothing,
 * and a later call tries again.
 */
void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns);

/*
 * Records that `peer` was heard. If there is an inquiry about `peer`, ends it and drops
 * its unreported finding.
 */
void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries,
			     uint32_t peer);

/*
 * Looks at all connections, and finds out which peers exist and which have ended. Also
 * reopens the connections that have ended, if mmc_udp_inquiries_ask() was called for
 * their peers in the last two seconds. Call this when epoll has reported a connection,
 * and at `due_ns`. `addresses` has the address of each rank's listener.
 */
void mmc_udp_inquiries_check(struct mmc_udp_inquiries *inquiries,
			     const struct sockaddr_in *addresses,
			     uint64_t now_ns);

/*
 * Writes an event for each unreported finding, but at most `nmax` events. Returns the
 * number of events. Those findings then count as reported.
 */
unsigned mmc_udp_inquiries_take(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax);

#endif
