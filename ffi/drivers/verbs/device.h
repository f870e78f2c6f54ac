/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices by name; see mpimcast/mmc.h for how one is chosen. */
#ifndef MMC_DRIVERS_VERBS_DEVICE_H
#define MMC_DRIVERS_VERBS_DEVICE_H

#include "core/wire/header.h"
#include "drivers/verbs/dl.h"

/* The most ports of a host that are looked at. */
#define MMC_VERBS_PORTS_MAX 256

/* The bytes beside a payload: header and trailer. */
static inline uint32_t mmc_verbs_head_bytes(enum mmc_checksum checksum)
{
	return MMC_HEADER_BYTES +
	       (checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0);
}

/*
 * Opens the device `name`; the libraries must be loaded. Returns NULL with the reason
 * if there is no such device, or this process may not open it.
 */
struct ibv_context *mmc_verbs_open_device(const char *name);

#endif
