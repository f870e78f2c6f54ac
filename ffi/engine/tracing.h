/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records a stream's operations in its trace: each operation with its stages once it has
 * ended, and each wait of an idle caller with the rank that it awaited. The caller of
 * each function holds the progress lock.
 */
#ifndef MMC_ENGINE_TRACING_H
#define MMC_ENGINE_TRACING_H

#include <mpimcast/trace.h>

#include "engine/state.h"

/* The counters whose changes are traced. */
#define MMC_TRACED_COUNTERS 3

struct mmc_tracing {
	struct mmc_trace *trace; /* outlives the stream */
	uint16_t track;
	uint64_t counted[MMC_TRACED_COUNTERS]; /* as of the last look */
	/* The request that a caller last waited for; NULL: `wait` is over. */
	const struct mmc_request *waiting;
	struct mmc_trace_event
		wait;		 /* grows as long as the same rank is awaited */
	uint64_t idle_ns;	 /* when the caller last had nothing to do */
	uint64_t news_ns;	 /* when chunks last came, in this wait */
	uint64_t quiet_ns;	 /* time without anything to do since */
	uint32_t missing_chunks; /* as of then */
};

/* Has a stream traced from its next operation on. Returns 0 or -MMC_ENOMEM. */
int mmc_tracing_begin(struct mmc_stream *stream, struct mmc_trace *trace,
		      uint32_t track);

/* Frees what mmc_tracing_begin() has allocated, if anything. */
void mmc_tracing_end(struct mmc_stream *stream);

/* Records that a caller of a traced stream has nothing to do until `request` goes on. */
void mmc_tracing_await(const struct mmc_request *request);

/* Records that the caller looks again, after mmc_tracing_await(). */
void mmc_tracing_resume(const struct mmc_request *request);

/* Records the end of a request of a traced stream; its operation is not closed yet. */
void mmc_tracing_finish(const struct mmc_request *request);

/* Records what was lost and repaired on the engine's traced streams since the last look. */
void mmc_tracing_note_repairs(const struct mmc_engine *engine);

#endif
