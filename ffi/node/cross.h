/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cross reads: members copy large blocks right out of the senders' own memory, once. Such
 * an operation begins with two entries, which have no slots. The first is the *advert*:
 * a sender tells where its block lies, and the members read it there. The second is the
 * *verdict*: each member says whether it has read all that it wants, and all wait for
 * all, since a sender's memory is the program's again when the operation is over. If
 * all have, the operation ends there; if a read has failed on any, its pieces go through
 * the slots as if there had been no entries.
 */
#ifndef MMC_NODE_CROSS_H
#define MMC_NODE_CROSS_H

#include "node/request.h"

/* Returns whether an entry of the request is its verdict. */
static inline bool mmc_node_is_verdict(const struct mmc_node_request *request,
				       uint32_t piece)
{
	return request->delivery == MMC_NODE_CROSS &&
	       piece - request->first_piece == 1;
}

/*
 * Returns what this rank says when it fills an entry: in an advert, where its block lies;
 * in a verdict, whether it lacks nothing.
 */
uint64_t mmc_node_cross_word(const struct mmc_node_request *request,
			     uint32_t piece);

/*
 * Takes an entry if this rank has all that it wants of it: the blocks of an advert, or
 * the words of a verdict. Sets `lacks` if a block cannot be read, or has not been read
 * by all members. Returns whether it has. The caller holds the mutex.
 */
bool mmc_node_cross_take(struct mmc_node_request *request);

/* Passes over the slots of a request whose blocks all members have read. */
void mmc_node_cross_skip(struct mmc_node_request *request);

#endif
