/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a request shares with its runner: the result, the tables of an
 * Allgatherv, and bits that say which chunks are present. The result is in the user's own
 * memory if the runner maps that; all else is in a bounce.
 *
 * The caller of each function holds the progress lock.
 */
#ifndef MMC_ENGINE_REMOTE_SHARING_H
#define MMC_ENGINE_REMOTE_SHARING_H

#include <mpimcast/abi/offload.h>

#include "engine/state.h"

/*
 * Finds or makes the memory for result and tables, puts tables and this rank's block
 * there, and writes to `command` where they are. Returns 0 or -MMC_ENOMEM.
 */
int mmc_remote_place(struct mmc_request *request,
		     struct mmc_offload_command *command);

/* Copies the blocks of all other ranks to the user's memory, if they are in a bounce. */
void mmc_remote_copy_out(struct mmc_request *request);

/*
 * Returns a bit for each chunk of a `partial` request that was placed, all of them clear,
 * and writes to `place` where they are; NULL if there is no memory. They stay until
 * mmc_remote_end_sharing().
 */
uint64_t *mmc_remote_share_bits(struct mmc_request *request,
				struct mmc_offload_place *place);

/* Takes the memory back, which the runner does not touch any more. */
void mmc_remote_end_sharing(struct mmc_request *request);

#endif
