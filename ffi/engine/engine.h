/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shell around the core: it owns memory, clock and polling. This header is
 * for the simulator and the tests, which step engines from outside; programs
 * use mpimcast/mmc.h, whose engines have a thread of their own.
 */
#ifndef MMC_ENGINE_ENGINE_H
#define MMC_ENGINE_ENGINE_H

#include <mpimcast/mmc.h>

#include "drivers/driver.h"

/* An engine without a thread: nothing moves but in mmc_engine_step(). */
int mmc_engine_create_stepped(struct mmc_engine **engine);

/*
 * Opens a team on `endpoint`, which it takes over also on failure. Of `options`
 * only what the endpoint does not know is read: rank, nranks, subgroups,
 * chunk_bytes and checksum. `buffer_bytes` is what the endpoint's receive
 * buffers safely hold.
 */
int mmc_team_create_on(struct mmc_engine *engine, struct mmc_endpoint *endpoint,
		       const struct mmc_team_options *options,
		       uint32_t buffer_bytes, struct mmc_team **team);

/*
 * Takes in what has come, moves every operation on, sends what is due. Returns
 * when to call again at the latest, in the endpoints' time, also if nothing
 * comes by then; MMC_NEVER_NS if only an event can change anything.
 */
uint64_t mmc_engine_step(struct mmc_engine *engine);

#endif
