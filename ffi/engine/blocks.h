/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that the entry barrier carries (core/operation/carried.h): their way from and to
 * the user's memory.
 */
#ifndef MMC_ENGINE_BLOCKS_H
#define MMC_ENGINE_BLOCKS_H

#include "engine/send.h"
#include "engine/state.h"

/*
 * Carries out the action CONTROL where that carries blocks: sends a message for each part
 * of them, of which `first` is the first one without the bytes. Returns 0 or a negative
 * error.
 */
int mmc_request_send_blocks(const struct mmc_request *request,
			    const struct mmc_action *action,
			    const struct mmc_letter *first);

/*
 * Takes a part of blocks, of `nbytes`, that a message of `source` about the request's
 * epoch has carried. Counts one that `source` does not owe as foreign, and returns false.
 */
bool mmc_request_receive_part(struct mmc_request *request, uint32_t source,
			      struct mmc_part part, uint32_t nbytes,
			      uint64_t now_ns);

/*
 * Takes the part of blocks in a message of `source` about `epoch`; keeps it if that has
 * not started here. Returns false if it is foreign.
 */
bool mmc_stream_receive_part(struct mmc_stream *stream, uint32_t source,
			     uint32_t epoch, const struct mmc_message *message,
			     uint64_t now_ns);

#endif
