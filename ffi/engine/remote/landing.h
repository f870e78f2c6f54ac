/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the blocks of a request land that a runner carries out. The request has bits and an
 * order of landing of its own (core/plan/landing.h), at which its user looks. From the
 * bits that the runner sets in shared memory they learn which chunks are new: these are
 * copied out of the bounce, if they are in one, and then they are present for the user, too.
 * Each chunk lands once: a runner that clears a bit, or sets it again, changes nothing.
 *
 * The caller of each function holds the progress lock.
 */
#ifndef MMC_ENGINE_REMOTE_LANDING_H
#define MMC_ENGINE_REMOTE_LANDING_H

#include <mpimcast/abi/offload.h>

#include "engine/state.h"

/*
 * Returns the bytes at the beginning of a request's memory that its landing takes: 0 if
 * the operation is not `partial`.
 */
size_t mmc_remote_landing_bytes(const struct mmc_team_options *team,
				const struct mmc_operation *operation);

/* Has this rank's block and empty ones land, if the request is `partial`. */
void mmc_remote_begin_landing(struct mmc_request *request);

/*
 * Writes to `command` where the runner is to show which chunks are present of a request
 * whose landing has begun. Returns false if there is no memory for that.
 */
bool mmc_remote_begin_showing(struct mmc_request *request,
			      struct mmc_offload_command *command);

/* Has those chunks land that the runner shows, if it does. */
void mmc_remote_land_shown(struct mmc_request *request);

/* Has all chunks land that have not: the operation has ended well. */
void mmc_remote_land_rest(struct mmc_request *request);

#endif
