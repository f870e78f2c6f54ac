/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwards pieces: a node leader exchanges its node's parts of those that its rail carries
 * with the other nodes, and passes over the rest.
 */
#ifndef MMC_NODE_FORWARD_H
#define MMC_NODE_FORWARD_H

#include "node/request.h"

/*
 * Begins to forward the stream's next piece, which is one of `request`'s, or passes over
 * it, if all members have filled it. Fails the stream if it cannot. Returns whether it
 * has. The caller holds the mutex.
 */
bool mmc_node_forward(struct mmc_node_request *request);

/*
 * Takes the forwarded pieces that are whole now, and tells the members. Fails the stream
 * if one has failed. Returns whether there was any. The caller holds the mutex.
 */
bool mmc_node_take_arrived(struct mmc_node_stream *stream);

/* Returns whether a piece is being forwarded. The caller holds the mutex. */
static inline bool mmc_node_is_forwarding(const struct mmc_node_stream *stream)
{
	return stream->narrived != stream->nforwarded;
}

/*
 * Waits for the piece that was forwarded first, for at most `limit_ns`. The caller
 * holds the mutex, and mmc_node_is_forwarding(); others may have the mutex meanwhile.
 */
void mmc_node_await_arrival(struct mmc_node_stream *stream, uint64_t limit_ns);

#endif
