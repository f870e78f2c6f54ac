/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The failure of a stream. The first member that fails writes why to the stream's head,
 * and all members fail with that. The caller of each function holds the mutex.
 */
#ifndef MMC_NODE_FAILING_H
#define MMC_NODE_FAILING_H

#include "node/request.h"

/*
 * Fails the stream because of `failure`, or because of another member's, if that came
 * first: ends all operations in flight, here and at the other nodes.
 */
void mmc_node_fail(struct mmc_node_stream *stream,
		   const struct mmc_failure *failure);

/* Does the same, but ends all here even while another member is writing its failure. */
void mmc_node_give_up(struct mmc_node_stream *stream,
		      const struct mmc_failure *failure);

/* Fails the stream if another member has failed. */
void mmc_node_adopt_failure(struct mmc_node_stream *stream);

/*
 * Sets this thread's last error to what this process knows of the stream's failure. That
 * is nothing if another member has seen it: the thread's last error was about something
 * else.
 */
void mmc_node_set_last_error(const struct mmc_node_stream *stream);

/* Returns the failure of a request for `error`, of which `culprit` is the cause. */
struct mmc_failure mmc_node_failure(const struct mmc_node_request *request,
				    int error, uint32_t culprit);

#endif
