/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: the life of an operation in the engine, from queue to spare memory. */
#ifndef MMC_ENGINE_REQUEST_H
#define MMC_ENGINE_REQUEST_H

#include "engine/state.h"

/*
 * Queues an operation, puts this rank's block in its place, and starts what can start.
 * Returns 0, -MMC_EINVAL or -MMC_ENOMEM.
 */
int mmc_request_start(struct mmc_stream *stream,
		      const struct mmc_operation *operation,
		      struct mmc_request **request);

/* Starts queued requests as long as the stream is ready for them. */
void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns);

/* Registers the result for other ranks, and tells the operation whether that worked. */
void mmc_request_register(struct mmc_request *request);

/* Carry out the actions DONE, FAILED and CLOSED: see enum mmc_action_kind. */
void mmc_request_done(struct mmc_request *request, bool retain);
void mmc_request_failed(struct mmc_request *request);
void mmc_request_closed(struct mmc_request *request);

/* Keeps a request as a spare once neither the user nor the protocol needs it. */
void mmc_request_recycle(struct mmc_request *request);

/* Frees all requests of a stream, in flight or not. */
void mmc_stream_drop_requests(struct mmc_stream *stream);

#endif
