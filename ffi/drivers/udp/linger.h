/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups outlive their endpoints for a while. Switches are slow to forget and to
 * learn: who leaves a group and joins it again at once may get nothing for
 * seconds. What lingers belongs to the process; any thread may call.
 */
#ifndef MMC_DRIVERS_UDP_LINGER_H
#define MMC_DRIVERS_UDP_LINGER_H

#include "core/types.h"

#define MMC_UDP_LINGER_NS (5 * MMC_S_NS)

/* As many groups linger at most; the oldest gives way. */
#define MMC_UDP_LINGERING_MAX 64

/*
 * Keeps `group` joined on the interface with `address`, both in host order, for
 * MMC_UDP_LINGER_NS from `now_ns`. If that fails it is left at once.
 */
void mmc_udp_linger(uint32_t address, uint32_t group, uint64_t now_ns);

/* Leaves the groups whose time is over at `now_ns`. */
void mmc_udp_linger_sweep(uint64_t now_ns);

#endif
