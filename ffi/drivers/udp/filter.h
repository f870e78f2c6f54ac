/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom a socket does not hear. */
#ifndef MMC_DRIVERS_UDP_FILTER_H
#define MMC_DRIVERS_UDP_FILTER_H

#include <netinet/in.h>

/*
 * Lets the kernel drop what comes from any of `count` sources, at most
 * MMC_UDP_RANKS_APART_MAX, before it takes room in the receive buffer. Replaces
 * what was refused before. Returns 0, or -1 with errno.
 */
int mmc_udp_refuse(int fd, const struct sockaddr_in *sources, unsigned count);

#endif
