/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spares: requests that have ended and are kept, with their memory, for later
 * operations of the stream. Thanks to them, a loop of operations of equal shape
 * allocates nothing after its first rounds.
 */
#ifndef MMC_ENGINE_SPARES_H
#define MMC_ENGINE_SPARES_H

#include "engine/state.h"

/*
 * Returns a request with at least `memory_bytes` for its operation: a spare, or a new
 * one. Returns NULL if there is not enough memory. Together with a new request makes a
 * spare like it: the next operation will start while other ranks still need this one.
 */
struct mmc_request *mmc_request_get(struct mmc_stream *stream,
				    size_t memory_bytes);

/*
 * Keeps a request as a spare, if neither the user nor another rank needs it any more.
 */
void mmc_request_recycle(struct mmc_request *request);

/* Frees all requests of a stream that is being closed, and gives up those in flight. */
void mmc_stream_drop_requests(struct mmc_stream *stream);

#endif
