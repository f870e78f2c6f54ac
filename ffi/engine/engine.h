/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines that are stepped from outside, for the simulator and the tests. Programs use
 * mpimcast/mmc.h instead, whose engines have a responder thread.
 */
#ifndef MMC_ENGINE_ENGINE_H
#define MMC_ENGINE_ENGINE_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/*
 * Creates an engine without a thread: it makes progress only in mmc_engine_step() and
 * in calls that wait. Returns 0 or -MMC_ENOMEM.
 */
int mmc_engine_create_stepped(struct mmc_engine **engine);

/*
 * Creates a stepped engine for a thread that makes all of its progress, and sleeps in
 * mmc_engine_doze() in between. `*wake_fd` is an eventfd that wakes it; it is closed with
 * the engine. Returns 0, -MMC_ENOMEM or -MMC_EIO.
 */
int mmc_engine_create_driven(struct mmc_engine **engine, int *wake_fd);

/*
 * Opens a team on `endpoint`, and becomes the endpoint's owner: if the call fails, it
 * closes the endpoint. `buffer_bytes` says how many bytes of chunks the endpoint's
 * receive buffers hold for certain. Options that only an endpoint needs, such as
 * addresses and ports, are not read. Returns 0 or a negative error.
 */
int mmc_team_create_on(struct mmc_engine *engine, struct mmc_endpoint *endpoint,
		       const struct mmc_team_options *options,
		       uint32_t buffer_bytes, struct mmc_team **team);

/*
 * Takes in datagrams, makes progress for every operation, and sends what is due.
 * Returns when it must be called again even if nothing arrives, or MMC_NEVER_NS if only
 * an event can change anything. That time is on the endpoints' clock, which all
 * endpoints of a stepped engine must share.
 */
uint64_t mmc_engine_step(struct mmc_engine *engine);

#endif
