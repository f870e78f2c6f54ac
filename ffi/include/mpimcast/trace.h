/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace: a ring of the latest events of this process. An event covers a time, and is
 * added when that has passed; so the events of an operation and its stages end one
 * within the other, and a ring that has gone round has lost the inner ones first. All
 * times are of CLOCK_MONOTONIC.
 */
#ifndef MPIMCAST_TRACE_H
#define MPIMCAST_TRACE_H

#include <mpimcast/node.h>
#include <mpimcast/stream.h>
#include <stdint.h>

struct mmc_trace;

/*
 * The kinds of events. The comment of each kind says what the fields mean whose meaning
 * depends on the kind.
 */
enum mmc_trace_kind {
	/*
	 * `detail`: its enum mmc_kind, or MMC_NODE_BARRIER; `amount`: the bytes of a
	 * block, in an Allgatherv of all blocks; `count`: its enum mmc_error; `peer`:
	 * the rank that caused it.
	 */
	MMC_TRACE_OPERATION = 1,
	MMC_TRACE_STAGE = 2, /* `detail`: enum mmc_trace_stage */
	/*
	 * A caller has waited for `peer`. `detail`: the stage, MULTICAST for REPAIR,
	 * too; `amount`: nanoseconds with nothing to do; `count`: how often that was so.
	 */
	MMC_TRACE_WAIT = 3,
	/*
	 * A caller had nothing to do for a millisecond or more before chunks came again.
	 * As MMC_TRACE_WAIT, but `count`: the chunks that were missing.
	 */
	MMC_TRACE_STALL = 4,
	/* Of the next three, `count` is how many chunks were noticed at `end_ns`. */
	MMC_TRACE_LOST = 5,	/* asked for, or announced as repairs */
	MMC_TRACE_REPAIRED = 6, /* that came as repairs, or were read */
	MMC_TRACE_RESENT = 7,	/* that this rank sent again */
	/* An operation that the MPI library has carried; as MMC_TRACE_OPERATION. */
	MMC_TRACE_LIBRARY = 8,
	/*
	 * A simulated rank has multicast its chunks of an operation, from the first until
	 * the last had left its host. `count`: the datagrams.
	 */
	MMC_TRACE_TURN = 9,
	/*
	 * A simulated host has sent a message of a script to host `peer`, or to a switch if
	 * that is UINT32_MAX, from its first packet until the last had left. `amount`: the
	 * bytes; `track`: the host.
	 */
	MMC_TRACE_MESSAGE = 10,
};

/* The stages of an operation, in order. */
enum mmc_trace_stage {
	MMC_TRACE_ENTRY = 1, /* until all ranks are known to have entered */
	MMC_TRACE_MULTICAST =
		2,	      /* until the last chunk came that was no repair */
	MMC_TRACE_REPAIR = 3, /* until every chunk is here, and all are sent */
	MMC_TRACE_RELEASE = 4, /* until no rank needs the buffers any more */
	MMC_TRACE_PIECES = 5,  /* of a node stream: from the entry to the end */
};

struct mmc_trace_event {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t amount;
	uint32_t epoch; /* of the operation; 0: of none in particular */
	uint32_t peer;	/* a rank of the stream; UINT32_MAX: none */
	uint32_t count;
	uint16_t track; /* the stream, as mmc_stream_set_trace() was told */
	uint8_t kind;	/* enum mmc_trace_kind */
	uint8_t detail;
};

/* Creates a trace that holds the latest `nslots` events. Returns 0 or -MMC_ENOMEM. */
int mmc_trace_create(uint32_t nslots, struct mmc_trace **trace);

/* Frees a trace. No stream may add to it any more. */
void mmc_trace_free(struct mmc_trace *trace);

/* Adds an event; if the trace is full, the oldest one goes. Any thread may call. */
void mmc_trace_add(struct mmc_trace *trace,
		   const struct mmc_trace_event *event);

/*
 * Copies the events that a trace holds, in the order in which they were added, to
 * `events`, which has room for all slots. Returns how many they are, and writes to
 * `nadded` how many were ever added. Any thread may call.
 */
uint32_t mmc_trace_read(struct mmc_trace *trace, struct mmc_trace_event *events,
			uint64_t *nadded);

/*
 * Has the operations of a stream traced from the next one on, as `track`. The trace must
 * outlive the stream. Returns 0 or a negative error.
 */
int mmc_stream_set_trace(struct mmc_stream *stream, struct mmc_trace *trace,
			 uint32_t track);

/* As mmc_stream_set_trace(), for a node stream; not for its stream between nodes. */
int mmc_node_stream_set_trace(struct mmc_node_stream *stream,
			      struct mmc_trace *trace, uint32_t track);

#endif
