/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the operations of a stream as far as they can be moved without waiting. */
#ifndef MMC_NODE_PROGRESS_H
#define MMC_NODE_PROGRESS_H

#include "node/request.h"

/*
 * Fills, forwards and reads pieces, completes requests, and fails the stream if another
 * member has failed. The caller holds the mutex.
 */
void mmc_node_progress(struct mmc_node_stream *stream);

#endif
