/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver of the adapter's own device, whose side of the ABI is mpimcast/abi/nic.h. */
#ifndef MMC_FIRMWARE_NIC_H
#define MMC_FIRMWARE_NIC_H

#include <mpimcast/abi/nic.h>

#include "drivers/driver.h"
#include "firmware/machine.h"

/* What the device and the firmware share: it lies behind the program's own memory. */
extern struct mmc_nic mmc_nic;

/* The harts beside the first one; NULL where there is none. They are made with the endpoint. */
extern struct mmc_hart *mmc_harts[MMC_NIC_HARTS_MAX];

/* Runs a hart beside the first one, from start.S, and does not return. */
void mmc_hart_main(uint32_t number);

/* Returns the memory at an offset of the ABI. */
static inline void *mmc_nic_memory(uint64_t offset)
{
	return (void *)(MMC_MACHINE_MEMORY + offset);
}

/*
 * Opens the only endpoint that there is; `*buffer_bytes` says how many bytes of chunks
 * its receive buffers hold for certain. Returns 0 or a negative error.
 */
int mmc_nic_open(const struct mmc_team_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint);

/*
 * Waits until the device has read all that it is to send: the host may then write to its
 * blocks again.
 */
void mmc_nic_flush(void);

/* Has the device ring the host's bell. */
void mmc_nic_ring_host(void);

/*
 * Prepares for a sleep. Returns whether the device has told something meanwhile, so that
 * the firmware must not sleep.
 */
bool mmc_nic_arm(void);

#endif
