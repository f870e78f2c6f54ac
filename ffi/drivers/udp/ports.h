/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds sockets to ports of a given range, such as a firewall lets through. */
#ifndef MMC_DRIVERS_UDP_PORTS_H
#define MMC_DRIVERS_UDP_PORTS_H

#include <mpimcast/mmc.h>
#include <netinet/in.h>

/*
 * Binds a UDP or TCP socket to the address of `address` and a port of `ports` that is
 * free there. The port that is tried first is random, so that late datagrams for a
 * port's last owner rarely meet the next owner. Returns 0, or -MMC_EIO with the reason:
 * no port is free, or the address is not this host's.
 */
int mmc_udp_bind_within(int fd, const struct sockaddr_in *address,
			const struct mmc_ports *ports);

#endif
