/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills pieces: puts this rank's parts into slots. */
#ifndef MMC_NODE_FILL_H
#define MMC_NODE_FILL_H

#include "node/request.h"

/*
 * Fills the stream's next piece, which is one of `request`'s, if its slot is free, and
 * puts this rank's part into its own result, too. Returns whether it did. The caller
 * holds the mutex.
 */
bool mmc_node_fill(struct mmc_node_request *request);

/*
 * Returns how many pieces all members have read, and sets `*slowest` to one that has
 * read no more.
 */
uint32_t mmc_node_least_read(const struct mmc_node_stream *stream,
			     uint32_t *slowest);

#endif
