/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the endpoints of this machine. */
#ifndef MMC_ENGINE_OPEN_H
#define MMC_ENGINE_OPEN_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/*
 * Opens the endpoint that `options` describe: the driver's, around it the faults that they
 * ask for, and around those protection, which notices them. `*buffer_bytes` says how many
 * bytes of chunks its receive buffers hold for certain. Returns 0 or a negative error.
 */
int mmc_endpoint_open(const struct mmc_team_options *options,
		      uint32_t *buffer_bytes, struct mmc_endpoint **endpoint);

#endif
