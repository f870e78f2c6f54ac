/* SPDX-License-Identifier: BSD-3-Clause */
/* How an operation starts: its request is queued, and becomes active in its turn. */
#ifndef MMC_ENGINE_REQUEST_H
#define MMC_ENGINE_REQUEST_H

#include "engine/state.h"

/*
 * Starts an operation: puts this rank's block in its place in the result unless it is
 * not ready, queues a request, and activates what can be. Returns 0 with `*request` set, -MMC_EINVAL if an
 * argument is wrong or this rank has left the stream, or -MMC_ENOMEM.
 */
int mmc_request_start(struct mmc_stream *stream,
		      const struct mmc_operation *operation,
		      struct mmc_request **request);

/*
 * Activates queued requests, in order, as long as the stream is ready for more, and they
 * are. If the stream is poisoned, fails them all.
 */
void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns);

/* Puts the block of a request that was not ready in its place, and activates what can be. */
void mmc_request_set_ready(struct mmc_request *request);

#endif
