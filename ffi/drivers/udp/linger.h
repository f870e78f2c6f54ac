/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps groups joined for a while after their endpoints have closed. Switches are slow
 * to forget and to learn: a process that leaves a group and joins it again at once may
 * receive nothing for seconds. Lingering groups belong to the process; any thread may
 * call.
 */
#ifndef MMC_DRIVERS_UDP_LINGER_H
#define MMC_DRIVERS_UDP_LINGER_H

#include "core/types.h"

#define MMC_UDP_LINGER_NS (5 * MMC_S_NS)

/* The most groups that linger; a new one replaces the oldest. */
#define MMC_UDP_LINGERING_MAX 64

/*
 * Keeps `group` joined on the interface with `address`, both in host order, for
 * MMC_UDP_LINGER_NS from `now_ns` on. If that fails, the group is left at once.
 */
void mmc_udp_linger(uint32_t address, uint32_t group, uint64_t now_ns);

/* Leaves the groups whose time has passed at `now_ns`. */
void mmc_udp_linger_sweep(uint64_t now_ns);

#endif
