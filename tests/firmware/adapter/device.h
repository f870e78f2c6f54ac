/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of an emulated adapter, as its firmware sees it through mpimcast/abi/nic.h. Behind
 * it is an ordinary endpoint of this machine, so adapters and hosts speak to each other
 * over the same network, with the same faults.
 */
#ifndef MMC_TESTS_ADAPTER_DEVICE_H
#define MMC_TESTS_ADAPTER_DEVICE_H

#include <mpimcast/abi/nic.h>
#include <stdbool.h>

#include "buffer.h"
#include "drivers/driver.h"

struct device {
	struct mmc_nic *nic;
	uint8_t *memory; /* the adapter's */
	uint64_t memory_bytes;
	struct mmc_endpoint *endpoint; /* NULL until the firmware opens it */
	uint32_t nranks;
	uint32_t nsubgroups;
	enum mmc_checksum checksum;
	struct buffer buffer;
	uint64_t nplaced;  /* payloads that the firmware had placed */
	uint64_t nwritten; /* payloads that were written to a buffer */
	uint64_t nreceived[MMC_NIC_HARTS_MAX]; /* datagrams, by queue */
	uint32_t halted; /* bit i: the firmware has halted queue i */
	uint32_t
		rings; /* bit i: queue i was told something since it was last rung for */
};

/*
 * Does what the firmware wants and tells it what has happened. Returns whether there was
 * anything.
 */
bool device_progress(struct device *device);

/* Receives as long as there are slots. Returns whether something has come. */
bool device_receive(struct device *device);

/* Prepares for a sleep. Returns whether the firmware has asked for something meanwhile. */
bool device_arm(struct device *device);

/* Returns whether the firmware must be rung for, since it sleeps and was told something. */
bool device_must_ring(struct device *device);

/* Closes the endpoint. */
void device_close(struct device *device);

#endif
