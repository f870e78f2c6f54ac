/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel filter by which a socket refuses datagrams from chosen sources. */
#ifndef MMC_DRIVERS_UDP_FILTER_H
#define MMC_DRIVERS_UDP_FILTER_H

#include <netinet/in.h>

/*
 * Lets the kernel drop datagrams from any of the `sources`, so that they take no room
 * in the receive buffer. There are `count` of them, at most MMC_UDP_RANKS_APART_MAX.
 * Replaces an earlier filter of the socket. Returns 0, or -1 with errno set.
 */
int mmc_udp_refuse(int fd, const struct sockaddr_in *sources, unsigned count);

#endif
