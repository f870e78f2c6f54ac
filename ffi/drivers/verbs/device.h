/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices by name; mpimcast/devices.h says how one is chosen. */
#ifndef MMC_DRIVERS_VERBS_DEVICE_H
#define MMC_DRIVERS_VERBS_DEVICE_H

#include "core/wire/header.h"
#include "drivers/verbs/dl.h"

/* The most ports of a host that are looked at. */
#define MMC_VERBS_PORTS_MAX 256

/* Returns the bytes of a datagram before the payload: header and CRC. */
static inline uint32_t mmc_verbs_head_bytes(enum mmc_checksum checksum)
{
	return MMC_HEADER_BYTES +
	       (checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0);
}

/* Returns an MTU in bytes: 256 for IBV_MTU_256, which is 1, then doubling. */
static inline uint32_t mmc_verbs_mtu_bytes(enum ibv_mtu mtu)
{
	return 128U << mtu;
}

/*
 * Opens the device `name`; mmc_verbs_load() must have succeeded. Returns NULL, with the
 * reason set, if there is no such device or this process may not open it.
 */
struct ibv_context *mmc_verbs_open_device(const char *name);

#endif
