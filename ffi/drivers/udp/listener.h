/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listener through which a kernel vouches for this process (RFC 9293): it
 * completes connections while the process exists, be it stopped, and refuses
 * them once it has ended. Connections carry nothing; a running process closes
 * them as they come.
 *
 * A child of fork() closes its copies of all listeners, or they would outlive
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
	struct mmc_udp_listener *next; /* of all in this process */
};

/*
 * Listens at `address`, at a TCP port of `ports`. The kernel queues up to
 * `backlog` connections, within net.core.somaxconn. Returns 0 or an error told;
 * mmc_udp_listener_close() is to be called all the same.
 */
int mmc_udp_listener_open(struct mmc_udp_listener *listener,
			  const struct sockaddr_in *address,
			  const struct mmc_ports *ports, uint32_t backlog);

void mmc_udp_listener_close(struct mmc_udp_listener *listener);

/*
 * Closes connections that have come, MMC_UDP_ACCEPTED_MAX at most. Returns
 * whether there may be more; what the process lacks descriptors for stays.
 */
bool mmc_udp_listener_clear(struct mmc_udp_listener *listener);

#endif
