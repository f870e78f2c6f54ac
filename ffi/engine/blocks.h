/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that the entry barrier's messages carry (core/operation/carried.h): their way
 * from and to the user's memory.
 */
#ifndef MMC_ENGINE_BLOCKS_H
#define MMC_ENGINE_BLOCKS_H

#include "engine/state.h"

/*
 * Writes to `bytes` the payloads of the chunks of `run`; behind the last chunk follow
 * those from 0 on.
 */
void mmc_request_write_blocks(const struct mmc_request *request,
			      struct mmc_run run, uint8_t *bytes);

/*
 * Takes blocks that a message of `source` about the request's epoch has carried.
 * Counts those that `source` does not owe as foreign, and returns false.
 */
bool mmc_request_receive_blocks(struct mmc_request *request, uint32_t source,
				const uint8_t *blocks, uint32_t nbytes,
				uint64_t now_ns);

/*
 * Takes the blocks of a message of `source` about `epoch`; keeps them if that has not
 * started here. Returns false if they are foreign.
 */
bool mmc_stream_receive_blocks(struct mmc_stream *stream, uint32_t source,
			       uint32_t epoch,
			       const struct mmc_message *message,
			       uint64_t now_ns);

#endif
