/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads pieces: copies the others' parts out of slots. */
#ifndef MMC_NODE_READ_H
#define MMC_NODE_READ_H

#include "node/request.h"

/*
 * Copies what has come of the stream's next unread piece, which is one of `request`'s,
 * into the result. Returns whether the piece has now been read to its end. The caller
 * holds the mutex.
 */
bool mmc_node_read(struct mmc_node_request *request);

/*
 * Returns the cursor that says whether the stream's next unread piece, which is one of
 * `request`'s and not its entry, has come from other nodes, as far as this member is
 * concerned.
 */
struct mmc_cursor *mmc_node_source(const struct mmc_node_request *request);

#endif
