/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/tracing.h"

#include <stdlib.h>

#include "engine/operation.h"

/* A caller that has nothing to do for so long before new chunks come has stalled. */
#define STALL_NS MMC_MS_NS

int mmc_tracing_begin(struct mmc_stream *stream, struct mmc_trace *trace,
		      uint32_t track)
{
	struct mmc_tracing *tracing = calloc(1, sizeof(*tracing));

	if (tracing == NULL)
		return -MMC_ENOMEM;
	tracing->trace = trace;
	tracing->track = (uint16_t)track;
	mmc_tracing_end(stream);
	stream->tracing = tracing;
	stream->team->engine->ntraced++;
	return 0;
}

void mmc_tracing_end(struct mmc_stream *stream)
{
	if (stream->tracing == NULL)
		return;
	stream->team->engine->ntraced--;
	free(stream->tracing);
	stream->tracing = NULL;
}

/* ---- repairs ------------------------------------------------------------- */

static void note_repairs(const struct mmc_stream *stream, uint64_t now_ns)
{
	static const struct {
		enum mmc_counter counter;
		enum mmc_trace_kind kind;
	} traced[MMC_TRACED_COUNTERS] = {
		{ MMC_COUNT_RX_LOST_CHUNKS, MMC_TRACE_LOST },
		{ MMC_COUNT_RX_REPAIRED_CHUNKS, MMC_TRACE_REPAIRED },
		{ MMC_COUNT_TX_REPAIR_DATAGRAMS, MMC_TRACE_RESENT },
	};
	struct mmc_tracing *tracing = stream->tracing;

	for (uint32_t i = 0; i < MMC_TRACED_COUNTERS; i++) {
		uint64_t value = stream->counters.value[traced[i].counter];
		const struct mmc_trace_event event = {
			.begin_ns = now_ns,
			.end_ns = now_ns,
			.epoch = mmc_epochs_last(&stream->epochs),
			.peer = MMC_PEER_NONE,
			.count = (uint32_t)(value - tracing->counted[i]),
			.track = tracing->track,
			.kind = (uint8_t)traced[i].kind,
		};

		if (event.count > 0)
			mmc_trace_add(tracing->trace, &event);
		tracing->counted[i] = value;
	}
}

void mmc_tracing_note_repairs(const struct mmc_engine *engine)
{
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		for (uint32_t i = 0; i < team->nstreams; i++)
			if (team->streams[i] != NULL &&
			    team->streams[i]->tracing != NULL)
				note_repairs(team->streams[i],
					     mmc_team_now_ns(team));
}

/* ---- waits --------------------------------------------------------------- */

/* Returns the stage of a request; 0 while it waits for earlier ones of its stream. */
static enum mmc_trace_stage stage_of(const struct mmc_op *op)
{
	if (op == NULL)
		return 0;
	if (!mmc_op_has_begun(op))
		return MMC_TRACE_ENTRY;
	return mmc_op_complete_ns(op) == 0 ? MMC_TRACE_MULTICAST
					   : MMC_TRACE_RELEASE;
}

/* Returns the rank that holds an operation up; of those that have not entered, one. */
static uint32_t awaited(const struct mmc_op *op)
{
	uint32_t unentered = op == NULL ? MMC_PEER_NONE : mmc_op_unentered(op);

	if (op == NULL || unentered != MMC_PEER_NONE)
		return unentered;
	return mmc_op_awaited(op);
}

/* Adds a stall if the caller had nothing to do for long until now. */
static void end_stall(struct mmc_tracing *tracing, uint64_t now_ns)
{
	struct mmc_trace_event stall = tracing->wait;

	stall.kind = MMC_TRACE_STALL;
	stall.begin_ns = tracing->news_ns;
	stall.end_ns = now_ns;
	stall.amount = tracing->quiet_ns;
	stall.count = tracing->missing_chunks;
	if (tracing->quiet_ns >= STALL_NS && stall.detail > MMC_TRACE_ENTRY)
		mmc_trace_add(tracing->trace, &stall);
	tracing->news_ns = now_ns;
	tracing->quiet_ns = 0;
}

/* Adds the wait, if there is one that is not over. */
static void end_wait(struct mmc_tracing *tracing)
{
	if (tracing->waiting == NULL)
		return;
	end_stall(tracing, tracing->wait.end_ns);
	mmc_trace_add(tracing->trace, &tracing->wait);
	tracing->waiting = NULL;
}

void mmc_tracing_await(const struct mmc_request *request)
{
	const struct mmc_stream *stream = request->stream;
	struct mmc_tracing *tracing = stream->tracing;
	const struct mmc_op *op = request->op;
	uint32_t missing = op == NULL ? 0 : mmc_op_missing_chunks(op);
	uint64_t now_ns = mmc_team_now_ns(stream->team);
	struct mmc_trace_event wait = {
		.begin_ns = now_ns,
		.end_ns = now_ns,
		.epoch = op == NULL ? 0 : mmc_op_epoch(op),
		.peer = awaited(op),
		.track = tracing->track,
		.kind = MMC_TRACE_WAIT,
		.detail = (uint8_t)stage_of(op),
	};

	note_repairs(stream, now_ns);
	if (tracing->waiting != request || tracing->wait.peer != wait.peer ||
	    tracing->wait.detail != wait.detail) {
		end_wait(tracing);
		tracing->wait = wait;
		tracing->waiting = request;
		tracing->news_ns = now_ns;
	} else if (missing != tracing->missing_chunks) {
		end_stall(tracing, now_ns);
	}
	tracing->missing_chunks = missing;
	tracing->idle_ns = now_ns;
}

void mmc_tracing_resume(const struct mmc_request *request)
{
	struct mmc_tracing *tracing = request->stream->tracing;
	uint64_t now_ns = mmc_team_now_ns(request->stream->team);
	uint64_t idle_ns = now_ns - tracing->idle_ns;

	tracing->wait.end_ns = now_ns;
	tracing->wait.amount += idle_ns;
	tracing->wait.count++;
	tracing->quiet_ns += idle_ns;
}

/* ---- ends ---------------------------------------------------------------- */

/* Adds a stage of an operation, unless it took no time. */
static void add_stage(const struct mmc_request *request,
		      enum mmc_trace_stage stage, uint64_t begin_ns,
		      uint64_t end_ns)
{
	const struct mmc_tracing *tracing = request->stream->tracing;
	const struct mmc_trace_event event = {
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.epoch = mmc_op_epoch(request->op),
		.peer = MMC_PEER_NONE,
		.track = tracing->track,
		.kind = MMC_TRACE_STAGE,
		.detail = (uint8_t)stage,
	};

	if (end_ns > begin_ns)
		mmc_trace_add(tracing->trace, &event);
}

static void add_stages(const struct mmc_request *request, uint64_t now_ns)
{
	const struct mmc_op *op = request->op;
	bool hears = mmc_op_own_block(op)->nbytes <
		     mmc_op_layout(op)->total_bytes;
	uint64_t complete_ns = mmc_op_complete_ns(op);
	uint64_t end_ns = complete_ns == 0 ? now_ns : complete_ns;
	uint64_t begun_ns;
	uint64_t heard_ns;

	if (!mmc_op_has_begun(op)) {
		add_stage(request, MMC_TRACE_ENTRY, request->start_ns, now_ns);
		return;
	}
	begun_ns = mmc_op_begun_ns(op);
	/*
	 * A rank that sends all the data receives none: its operation has no repair stage,
	 * and is done once the data is sent.
	 */
	heard_ns = hears ? mmc_op_heard_ns(op) : end_ns;
	add_stage(request, MMC_TRACE_ENTRY, request->start_ns, begun_ns);
	add_stage(request, MMC_TRACE_MULTICAST, begun_ns, heard_ns);
	add_stage(request, MMC_TRACE_REPAIR, heard_ns, end_ns);
	add_stage(request, MMC_TRACE_RELEASE, end_ns, now_ns);
}

void mmc_tracing_finish(const struct mmc_request *request)
{
	const struct mmc_stream *stream = request->stream;
	struct mmc_tracing *tracing = stream->tracing;
	const struct mmc_operation *operation = &request->operation;
	const struct mmc_failure *failure = &request->failure;
	uint64_t now_ns = mmc_team_now_ns(stream->team);
	const struct mmc_trace_event event = {
		.begin_ns = request->start_ns,
		.end_ns = now_ns,
		.amount = operation->kind == MMC_ALLGATHERV
				  ? mmc_operation_total(
					    operation,
					    stream->team->options.nranks)
				  : operation->block_bytes,
		.epoch = request->op != NULL ? mmc_op_epoch(request->op)
					     : failure->epoch,
		.peer = failure->culprit,
		.count = (uint32_t)-failure->error,
		.track = tracing->track,
		.kind = MMC_TRACE_OPERATION,
		.detail = (uint8_t)operation->kind,
	};

	note_repairs(stream, now_ns);
	if (tracing->waiting == request)
		end_wait(tracing);
	if (request->op != NULL)
		add_stages(request, now_ns);
	mmc_trace_add(tracing->trace, &event);
}
