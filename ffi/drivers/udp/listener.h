/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listener through which a kernel vouches for this process (RFC 9293): it completes
 * connections while the process exists, even stopped, and refuses them once it has
 * ended. Connections carry nothing; a running process closes them as they arrive.
 *
 * A child of fork() closes its copies of all listeners, which would otherwise outlive
 * the parent.
 */
#ifndef MMC_DRIVERS_UDP_LISTENER_H
#define MMC_DRIVERS_UDP_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/udp/ports.h"

/* The most connections that one call accepts. */
#define MMC_UDP_ACCEPTED_MAX 64

struct mmc_udp_listener {
	int fd; /* -1 if closed */
	uint16_t port;
	struct mmc_udp_listener *next; /* in this process's list */
};

/*
 * Listens at `address`, at a TCP port of `ports`. The kernel queues up to `backlog`
 * connections, within net.core.somaxconn. Returns 0 or an error, with the reason set;
 * the caller calls mmc_udp_listener_close() in either case.
 */
int mmc_udp_listener_open(struct mmc_udp_listener *listener,
			  const struct sockaddr_in *address,
			  const struct mmc_ports *ports, uint32_t backlog);

void mmc_udp_listener_close(struct mmc_udp_listener *listener);

/*
 * Closes connections that have arrived, MMC_UDP_ACCEPTED_MAX at most. Returns whether
 * there may be more. A connection that the process has no descriptor for stays queued.
 */
bool mmc_udp_listener_clear(struct mmc_udp_listener *listener);

#endif
