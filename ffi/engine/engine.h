/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shell around the core: it owns memory, clock and polling. This header is for the
 * simulator and the tests, which step engines from outside; programs use
 * mpimcast/mmc.h, whose engines have a thread of their own.
 */
#ifndef MMC_ENGINE_ENGINE_H
#define MMC_ENGINE_ENGINE_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/* Creates an engine without a thread, which progresses in mmc_engine_step(). */
int mmc_engine_create_stepped(struct mmc_engine **engine);

/*
 * Opens a team on `endpoint`, which it owns from then on, even on failure. Reads from
 * `options` only what the endpoint does not know: rank, nranks, subgroups, chunk_bytes
 * and checksum. `buffer_bytes` is what the endpoint's receive buffers safely hold.
 */
int mmc_team_create_on(struct mmc_engine *engine, struct mmc_endpoint *endpoint,
		       const struct mmc_team_options *options,
		       uint32_t buffer_bytes, struct mmc_team **team);

/*
 * Takes in datagrams, makes progress for every operation, and sends what is due.
 * Returns the time, on the endpoints' clock, by which it must be called again even if
 * nothing arrives; MMC_NEVER_NS if only an event can change anything.
 */
uint64_t mmc_engine_step(struct mmc_engine *engine);

#endif
