/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds sockets to ports of a given range, such as those that a firewall lets pass. */
#ifndef MMC_DRIVERS_UDP_PORTS_H
#define MMC_DRIVERS_UDP_PORTS_H

#include <mpimcast/mmc.h>
#include <netinet/in.h>

/*
 * Binds a UDP or TCP socket to the IP address of `address` and to a port of the range
 * `ports` that is free. Tries a random port first, so that the new owner of a port
 * rarely receives late datagrams for the last one. Returns 0, or -MMC_EIO with the
 * reason set: no port is free, or the address is not one of this host.
 */
int mmc_udp_bind_within(int fd, const struct sockaddr_in *address,
			const struct mmc_ports *ports);

#endif
