/* SPDX-License-Identifier: BSD-3-Clause */
/* How an operation ends: for its user, for its memory, and for other ranks. */
#ifndef MMC_ENGINE_COMPLETION_H
#define MMC_ENGINE_COMPLETION_H

#include "engine/state.h"

/*
 * Carries out the action DONE: the buffers are the user's again. With `retain`, first
 * takes a copy of this rank's block, which serves later repairs.
 */
void mmc_request_complete(struct mmc_request *request, bool retain);

/* Carries out the action FAILED: the buffers are the user's again. */
void mmc_request_fail(struct mmc_request *request);

/*
 * Carries out the action CLOSED: the request may be used again once the user frees it.
 */
void mmc_request_close(struct mmc_request *request);

/*
 * Ends a request whose `failure` is set: gives the buffers back to the user, and tells
 * those who wait for it.
 */
void mmc_request_finish(struct mmc_request *request);

/*
 * Fails a request that is still queued, since an earlier failure poisoned its stream.
 */
void mmc_request_fail_poisoned(struct mmc_request *request);

#endif
