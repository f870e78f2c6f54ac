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
 * Returns the cursor that passes the stream's next unread piece once this member need
 * wait for other nodes no longer. The piece belongs to `request`, and is not its entry.
 */
struct mmc_cursor *mmc_node_source(const struct mmc_node_request *request);

#endif
