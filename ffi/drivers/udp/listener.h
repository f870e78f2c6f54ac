/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP listener by which other ranks find out whether this process exists: the kernel
 * completes connections to it while the process exists, even if it is stopped, and
 * refuses them once the process has ended (RFC 9293). Nothing is done with the
 * connections: a running process closes them as they arrive.
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
	struct mmc_udp_listener *next; /* in the list of all that are open */
};

/*
 * Listens at the IP address of `address`, at a TCP port of the range `ports`. The
 * kernel queues up to `backlog` connections, or net.core.somaxconn if that is less.
 * Returns 0, or -MMC_EIO with the reason set; the caller must call
 * mmc_udp_listener_close() in either case.
 */
int mmc_udp_listener_open(struct mmc_udp_listener *listener,
			  const struct sockaddr_in *address,
			  const struct mmc_ports *ports, uint32_t backlog);

/* Closes the listener, if it is open. */
void mmc_udp_listener_close(struct mmc_udp_listener *listener);

/*
 * Accepts and closes connections that have arrived, MMC_UDP_ACCEPTED_MAX at most.
 * Returns whether more may be waiting. If the process has no descriptor left, they stay
 * in the queue.
 */
bool mmc_udp_listener_clear(struct mmc_udp_listener *listener);

#endif
