/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps groups joined for a while after the endpoints that used them have closed.
 * Switches are slow to forget members and to learn of new ones: a process that leaves a
 * group and joins it again at once may receive nothing for seconds. The groups that
 * linger belong to the process as a whole; any thread may call these functions.
 */
#ifndef MMC_DRIVERS_UDP_LINGER_H
#define MMC_DRIVERS_UDP_LINGER_H

#include "core/types.h"

/* How long a group stays joined. */
#define MMC_UDP_LINGER_NS (5 * MMC_S_NS)

/* The most groups that linger; a new one replaces the oldest. */
#define MMC_UDP_LINGERING_MAX 64

/*
 * Keeps `group` joined on the interface with the IPv4 address `address`, both in host
 * order, for MMC_UDP_LINGER_NS from `now_ns` on. If that fails, the group does not
 * linger.
 */
void mmc_udp_linger(uint32_t address, uint32_t group, uint64_t now_ns);

/*
 * Leaves the groups whose time has ended by `now_ns`, a time of mmc_clock_now_ns().
 * Returns when the time of another one ends, or MMC_NEVER_NS if none lingers any more.
 */
uint64_t mmc_udp_linger_sweep(uint64_t now_ns);

#endif
