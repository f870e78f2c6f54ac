/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in its slot the parts of a piece lie. */
#ifndef MMC_NODE_PLACES_H
#define MMC_NODE_PLACES_H

#include "node/request.h"

/*
 * Writes to the stream's `places` where the part of each rank lies of the request's
 * piece number `index`, and to its `nodes_bytes` how long each node's parts are
 * together. The caller holds the mutex.
 */
void mmc_node_lay_out(const struct mmc_node_request *request, uint32_t index);

/* Returns what the request's piece number `index` takes of a rank's block. */
static inline struct mmc_part
mmc_node_part(const struct mmc_node_request *request, uint32_t index,
	      uint32_t rank)
{
	uint32_t block = request->operation.kind == MMC_BCAST ? 0 : rank;

	return mmc_pieces_part(&request->pieces, index, block);
}

#endif
