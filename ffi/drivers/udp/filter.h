/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters datagrams from chosen sources out of a socket. */
#ifndef MMC_DRIVERS_UDP_FILTER_H
#define MMC_DRIVERS_UDP_FILTER_H

#include <netinet/in.h>

/*
 * Lets the kernel drop datagrams from any of `count` sources, at most
 * MMC_UDP_RANKS_APART_MAX, before they take room in the receive buffer. Replaces an
 * earlier filter. Returns 0, or -1 with errno.
 */
int mmc_udp_refuse(int fd, const struct sockaddr_in *sources, unsigned count);

#endif
