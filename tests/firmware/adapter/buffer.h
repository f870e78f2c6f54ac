/* SPDX-License-Identifier: BSD-3-Clause */
/* The tagged buffer that a firmware has registered with a device: see mpimcast/abi/nic.h. */
#ifndef MMC_TESTS_ADAPTER_BUFFER_H
#define MMC_TESTS_ADAPTER_BUFFER_H

#include <mpimcast/abi/nic.h>
#include <stdbool.h>

#include "core/wire/header.h"
#include "drivers/driver.h"

struct buffer {
	struct mmc_nic_buffer told;
	struct mmc_nic_block *blocks; /* [nblocks]; NULL: none is registered */
	uint32_t nblocks;
};

/*
 * Registers the buffer that `told` and the table of `nblocks` blocks describe, and copies
 * both. Returns 0; -MMC_EINVAL if a block does not lie in the host's memory, or a buffer is
 * registered already; or -MMC_ENOMEM.
 */
int buffer_register(struct buffer *buffer, const struct mmc_nic *nic,
		    const struct mmc_nic_buffer *told,
		    const struct mmc_nic_block *table, uint32_t nblocks);

/* Deregisters the buffer, if there is one. */
void buffer_deregister(struct buffer *buffer);

/*
 * Returns at which offset the payload of a datagram belongs, with its header written to
 * `header`; 0 if the datagram does not carry the tag of a registered buffer.
 */
uint64_t buffer_place(const struct buffer *buffer,
		      const struct mmc_event *datagram,
		      enum mmc_checksum checksum, struct mmc_header *header);

#endif
