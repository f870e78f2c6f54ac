/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for other members, as long as the limits of the stream allow. */
#ifndef MMC_NODE_WAIT_H
#define MMC_NODE_WAIT_H

#include "node/request.h"

/* The member that the first request in flight waits for. */
struct mmc_node_awaited {
	struct mmc_cursor *cursor; /* whose move the stream waits for */
	uint32_t npieces;	   /* where it stands */
	uint32_t rank;
	bool entered; /* whether the rank has started the operation */
	bool moved;   /* it has come so far already: nothing is awaited */
	bool between; /* it is a node leader, which awaits other nodes */
};

/* Returns whom the stream waits for. A request is in flight; the caller has the mutex. */
struct mmc_node_awaited
mmc_node_find_awaited(const struct mmc_node_stream *stream);

/*
 * Sleeps until the awaited member may have moved, for at most `limit_ns`, but no longer
 * than a member may go without looking at the clock and at others' failures. The caller
 * holds the mutex, which others may have meanwhile.
 */
void mmc_node_sleep(struct mmc_node_stream *stream, uint64_t limit_ns);

/*
 * Counts the time since the last call, if nothing has moved since, and fails the stream
 * if the awaited rank has ended, has left, or has taken too long. The caller holds the
 * mutex.
 */
void mmc_node_check_patience(struct mmc_node_request *request, uint64_t now_ns);

#endif
