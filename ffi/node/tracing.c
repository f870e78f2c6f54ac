/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/tracing.h"

#include <mpimcast/errors.h>
#include <stdlib.h>

#include "support/bits.h"
#include "support/clock.h"

int mmc_node_tracing_begin(struct mmc_node_stream *stream,
			   struct mmc_trace *trace, uint32_t track)
{
	struct mmc_node_tracing *tracing = calloc(1, sizeof(*tracing));

	if (tracing == NULL)
		return -MMC_ENOMEM;
	tracing->trace = trace;
	tracing->track = (uint16_t)track;
	mmc_node_tracing_end(stream);
	stream->tracing = tracing;
	return 0;
}

void mmc_node_tracing_end(struct mmc_node_stream *stream)
{
	free(stream->tracing);
	stream->tracing = NULL;
}

void mmc_node_tracing_put(struct mmc_node_request *request)
{
	request->put_ns = mmc_clock_now_ns();
}

/* Adds the wait, if there is one that is not over. */
static void end_wait(struct mmc_node_tracing *tracing)
{
	if (tracing->wait.kind != 0)
		mmc_trace_add(tracing->trace, &tracing->wait);
	tracing->wait.kind = 0;
}

/* Returns whether a wait for some rank to enter `request` is not over. */
static bool awaits_entry(const struct mmc_node_tracing *tracing,
			 const struct mmc_node_request *request)
{
	return tracing->wait.kind != 0 && tracing->waiting == request &&
	       tracing->wait.detail == MMC_TRACE_ENTRY;
}

/* Begins the wait that a sleep is a part of, or goes on with it. */
static void begin_wait(struct mmc_node_tracing *tracing,
		       const struct mmc_node_sleep *sleep)
{
	uint8_t stage = sleep->entered ? MMC_TRACE_PIECES : MMC_TRACE_ENTRY;

	if (tracing->wait.kind != 0 && tracing->waiting == sleep->first &&
	    tracing->wait.peer == sleep->rank && tracing->wait.detail == stage)
		return;
	end_wait(tracing);
	tracing->waiting = sleep->first;
	tracing->wait = (struct mmc_trace_event){
		.begin_ns = mmc_max_u64(sleep->begin_ns, sleep->first->put_ns),
		.epoch = sleep->epoch,
		.peer = sleep->rank,
		.track = tracing->track,
		.kind = MMC_TRACE_WAIT,
		.detail = stage,
	};
}

void mmc_node_tracing_slept(struct mmc_node_stream *stream,
			    const struct mmc_node_sleep *sleep)
{
	struct mmc_node_tracing *tracing = stream->tracing;
	uint64_t now_ns;

	/* Another thread has ended the operation meanwhile. */
	if (stream->first != sleep->first ||
	    stream->first->epoch != sleep->epoch)
		return;
	now_ns = mmc_clock_now_ns();
	begin_wait(tracing, sleep);
	tracing->wait.end_ns = now_ns;
	tracing->wait.amount +=
		now_ns - mmc_max_u64(sleep->begin_ns, tracing->wait.begin_ns);
	tracing->wait.count++;
}

void mmc_node_tracing_entered(struct mmc_node_stream *stream)
{
	struct mmc_node_tracing *tracing = stream->tracing;

	if (!awaits_entry(tracing, stream->first))
		return;
	stream->first->entered_ns = mmc_clock_now_ns();
	tracing->wait.end_ns = stream->first->entered_ns;
	end_wait(tracing);
}

/* Adds a stage of an operation. */
static void add_stage(const struct mmc_node_request *request,
		      enum mmc_trace_stage stage, uint64_t begin_ns,
		      uint64_t end_ns)
{
	const struct mmc_node_tracing *tracing = request->stream->tracing;
	const struct mmc_trace_event event = {
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.epoch = request->epoch,
		.peer = UINT32_MAX,
		.track = tracing->track,
		.kind = MMC_TRACE_STAGE,
		.detail = (uint8_t)stage,
	};

	mmc_trace_add(tracing->trace, &event);
}

void mmc_node_tracing_finish(const struct mmc_node_request *request)
{
	struct mmc_node_tracing *tracing = request->stream->tracing;
	const struct mmc_operation *operation = &request->operation;
	uint64_t now_ns = mmc_clock_now_ns();
	uint64_t entered_ns = request->entered_ns;
	const struct mmc_trace_event event = {
		.begin_ns = request->put_ns,
		.end_ns = now_ns,
		.amount = operation->kind == MMC_ALLGATHERV
				  ? request->pieces.total_bytes
				  : operation->block_bytes,
		.epoch = request->epoch,
		.peer = request->failure.error != 0 ? request->failure.culprit
						    : UINT32_MAX,
		.count = (uint32_t)-request->failure.error,
		.track = tracing->track,
		.kind = MMC_TRACE_OPERATION,
		.detail = (uint8_t)operation->kind,
	};

	if (awaits_entry(tracing, request))
		entered_ns = tracing->wait.end_ns = now_ns;
	if (tracing->waiting == request)
		end_wait(tracing);
	/* Put before the stream was traced: nothing is known of its time. */
	if (request->put_ns == 0)
		return;
	/* An operation for whose entry nobody had to wait is not divided. */
	if (entered_ns != 0) {
		add_stage(request, MMC_TRACE_ENTRY, request->put_ns,
			  entered_ns);
		add_stage(request, MMC_TRACE_PIECES, entered_ns, now_ns);
	}
	mmc_trace_add(tracing->trace, &event);
}
