/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node stream tells its trace, as engine/tracing.h does for other streams. The
 * caller of each function holds the mutex.
 */
#ifndef MMC_NODE_TRACING_H
#define MMC_NODE_TRACING_H

#include <mpimcast/trace.h>

#include "node/request.h"

struct mmc_node_tracing {
	struct mmc_trace *trace; /* outlives the stream */
	uint16_t track;
	/* It grows as long as the same rank is awaited; `kind` 0: there is none. */
	struct mmc_trace_event wait;
	struct mmc_node_request *waiting; /* whose `wait` is */
};

/* One sleep of a caller. */
struct mmc_node_sleep {
	struct mmc_node_request *first; /* in flight when it began */
	uint32_t epoch;			/* its epoch */
	uint32_t rank;			/* the rank awaited */
	bool entered;			/* whether that had entered `first` */
	uint64_t begin_ns;
};

/* Has a stream traced from its next operation on. Returns 0 or -MMC_ENOMEM. */
int mmc_node_tracing_begin(struct mmc_node_stream *stream,
			   struct mmc_trace *trace, uint32_t track);

/* Frees what mmc_node_tracing_begin() has allocated, if anything. */
void mmc_node_tracing_end(struct mmc_node_stream *stream);

/* Records that a request of a traced stream begins. */
void mmc_node_tracing_put(struct mmc_node_request *request);

/*
 * Records a sleep that ends now. Shorter waits, without a sleep, are not recorded: that
 * would cost small operations a good part of what they take.
 */
void mmc_node_tracing_slept(struct mmc_node_stream *stream,
			    const struct mmc_node_sleep *sleep);

/*
 * Records that all ranks that a caller awaited have entered the operation in flight, if it
 * slept before they had. They may have entered between two sleeps.
 */
void mmc_node_tracing_entered(struct mmc_node_stream *stream);

/* Records the end of a request of a traced stream. */
void mmc_node_tracing_finish(const struct mmc_node_request *request);

#endif
