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

/*
 * Writes to the stream's `nodes_bytes` how long each node's blocks are together. The
 * caller holds the mutex.
 */
void mmc_node_add_up(const struct mmc_node_request *request);

/*
 * Returns what a rank puts into the request's piece number `index`. What arrives in place
 * is put there as a whole with the first piece.
 */
static inline struct mmc_part
mmc_node_part(const struct mmc_node_request *request, uint32_t index,
	      uint32_t rank)
{
	if (request->delivery != MMC_NODE_IN_PLACE)
		return mmc_pieces_part(&request->pieces, index,
				       mmc_node_request_block(request, rank));
	return (struct mmc_part){
		.nbytes = index > 0 ? 0 : mmc_node_request_bytes(request, rank),
	};
}

#endif
