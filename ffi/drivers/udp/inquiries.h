/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking the kernels of silent ranks whether their processes exist: by a TCP
 * connection to each one's listener, which is kept while it is silent, and on
 * which every question is a byte that the kernel there acknowledges.
 *
 * A connection that is refused means that the process has ended. One that is
 * closed, or breaks, means nothing by itself: it is made anew. An accept queue
 * keeps what a stopped process has not accepted, so a connection is only made
 * again after some time.
 */
#ifndef MMC_DRIVERS_UDP_INQUIRIES_H
#define MMC_DRIVERS_UDP_INQUIRIES_H

#include <netinet/in.h>

#include "drivers/driver.h"

/* Connections to one rank are at least this far apart. */
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
	bool ended; /* an established connection has, and there is no other */
	uint64_t asked_ns;	      /* when it was asked last */
	uint64_t connected_ns;	      /* when it was connected last */
	enum mmc_udp_finding finding; /* not yet reported */
};

struct mmc_udp_inquiries {
	int epoll_fd; /* where connections are watched, */
	uint32_t tag; /* and under which data */
	struct mmc_udp_inquiry *items;
	uint32_t count;
	uint32_t nmax;
	uint32_t nfound; /* findings not yet reported */
	uint64_t due_ns; /* when a closed connection is made anew */
};

/* Nobody is asked about yet; connections will be watched by `epoll_fd`. */
void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag);

void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries);

/* Asks about `peer`, which listens at `address`. */
void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns);

/* `peer` was heard: whatever is open for it is closed. */
void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries,
			     uint32_t peer);

/*
 * Looks at the connections after one has become ready, or at `due_ns`;
 * `addresses` are those of all ranks' listeners.
 */
void mmc_udp_inquiries_look(struct mmc_udp_inquiries *inquiries,
			    const struct sockaddr_in *addresses,
			    uint64_t now_ns);

/* Writes events of what was found, `nmax` at most; returns how many. */
unsigned mmc_udp_inquiries_poll(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax);

#endif
