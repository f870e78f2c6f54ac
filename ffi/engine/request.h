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

/*
 * Returns for how long a call may wait for a request that is not complete, if it asks for
 * `slice_ns`. As long as some rank has not entered the operation, the MPI library may
 * have to make progress for that; later calls return ever less often, see MMC_SLICES_MAX.
 * The caller holds the progress lock.
 */
uint64_t mmc_request_slice_ns(const struct mmc_request *request,
			      uint64_t slice_ns, uint64_t now_ns);

#endif
