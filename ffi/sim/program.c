/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/program.h"

#include "core/counters.h"
#include "engine/tracing.h"
#include "support/bits.h"

static void shuffle(struct mmc_prng *prng, uint32_t *order, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)mmc_prng_below(prng, i);
		uint32_t last = order[i - 1];

		order[i - 1] = order[j];
		order[j] = last;
	}
}

/* Has the streams of a host traced, if the run is. */
static void begin_traces(struct mmc_host *host)
{
	struct mmc_stage *stage = host->stage;
	uint32_t nstreams = stage->spec->nstreams;

	for (uint32_t i = 0; stage->trace && i < nstreams; i++)
		if (mmc_stream_set_trace(host->streams[i].stream, stage->trace,
					 host->rank * nstreams + i) < 0)
			stage->network.out_of_memory = true;
}

void mmc_program_plan(struct mmc_host *host)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	struct mmc_network *network = &host->stage->network;
	uint64_t entry_ns = mmc_prng_below(&host->prng, spec->entry_spread_ns);
	uint32_t order[MMC_SIM_STREAMS_MAX];

	begin_traces(host);
	if (host->rank == spec->delayed_rank)
		entry_ns += spec->delay_ns;
	for (uint32_t i = 0; i < spec->nstreams; i++)
		order[i] = i;
	if (spec->shuffled)
		shuffle(&host->prng, order, spec->nstreams);
	for (uint32_t i = 0; i < spec->nstreams; i++)
		mmc_network_at(network, mmc_host_after_stall(host, entry_ns),
			       MMC_TIMER_START,
			       host->rank * spec->nstreams + order[i]);
	if (host->rank == spec->dead_rank)
		mmc_network_at(network, spec->dead_ns, MMC_TIMER_DEATH,
			       host->rank);
	if (host->rank == spec->ended_rank)
		mmc_network_at(network, spec->ended_ns, MMC_TIMER_END,
			       host->rank);
	if (host->rank == spec->cancelling_rank)
		mmc_network_at(network, spec->cancel_ns, MMC_TIMER_CANCEL,
			       host->rank);
	host->stage->nrunning += spec->nstreams * spec->nops;
}

/* Returns the library's reason why an operation has failed, if it has. */
static struct mmc_failure reason(struct mmc_host_stream *stream,
				 struct mmc_request *request, int error)
{
	struct mmc_failure failure = { 0 };

	if (error == -MMC_EPOISONED)
		mmc_stream_failure(stream->stream, &failure);
	else if (request)
		mmc_request_failure(request, &failure);
	return failure;
}

/* Adds the turn to the trace that a stream has had in an operation, if any. */
static void end_turn(struct mmc_host_stream *stream, struct mmc_trace *trace)
{
	if (stream->turn.count > 0)
		mmc_trace_add(trace, &stream->turn);
	stream->turn.count = 0;
}

/* Lets the turn of a stream begin, or last until now, if it has multicast anything. */
static void note_turn(struct mmc_host *host, uint32_t index)
{
	struct mmc_host_stream *stream = &host->streams[index];
	struct mmc_network *network = &host->stage->network;
	struct mmc_trace_event *turn = &stream->turn;
	struct mmc_counters counters;
	uint64_t nmulticast;

	mmc_stream_counters(stream->stream, counters.value);
	nmulticast = counters.value[MMC_COUNT_TX_MULTICAST_DATAGRAMS];
	if (nmulticast == stream->nmulticast)
		return;
	if (turn->count == 0)
		*turn = (struct mmc_trace_event){
			.begin_ns = mmc_max_u64(network->now_ns, turn->end_ns),
			.epoch = stream->nended + 1,
			.peer = UINT32_MAX,
			.track =
				(uint16_t)(host->rank *
						   host->stage->spec->nstreams +
					   index),
			.kind = MMC_TRACE_TURN,
		};
	turn->count += (uint32_t)(nmulticast - stream->nmulticast);
	turn->end_ns =
		network->now_ns + mmc_network_unsent_ns(network, host->rank, 0);
	stream->nmulticast = nmulticast;
}

/* Checks the outcome of an operation and takes its buffers back. */
static void finish(struct mmc_host *host, uint32_t stream, uint32_t index,
		   int error)
{
	struct mmc_host_stream *at = &host->streams[stream];
	const struct mmc_failure failure =
		reason(at, at->requests[index], error);
	struct mmc_stage *stage = host->stage;
	uint32_t number = stream * stage->spec->nops + index;
	struct mmc_sim_op *op = &stage->ops[number];
	struct mmc_sim_rank *outcome = &host->outcome;
	uint64_t now_ns = stage->network.now_ns;
	uint64_t busy_ns = now_ns - at->start_ns[index];
	const char *flaw =
		error < 0 ? mmc_sim_op_failed_flaw(op, host->rank,
						   stage->spec->zero_copy > 0)
			  : mmc_sim_op_flaw(op, host->rank);

	if (!flaw)
		flaw = mmc_stage_failure_flaw(stage, error, &failure);
	if (!flaw &&
	    mmc_sim_regions_are_granted(&stage->regions, op->parts[host->rank],
					op->part_bytes))
		flaw = "other ranks may still read its buffers";
	if (flaw)
		mmc_finding_add(&stage->finding, now_ns,
				"rank %u, stream %u, operation %u ended with "
				"\"%s\" (culprit %d): %s",
				host->rank, stream, index, mmc_strerror(error),
				(int)failure.culprit, flaw);
	end_turn(at, stage->trace);
	mmc_request_free(at->requests[index]);
	at->requests[index] = NULL;
	mmc_sim_op_release(op, host->rank);
	mmc_monitor_on_release(&stage->monitor, number, host->rank);
	if (error < 0) {
		outcome->failed_ops++;
		if (outcome->error == 0)
			outcome->error = error;
	} else {
		outcome->done_ops++;
	}
	outcome->end_ns = now_ns;
	outcome->last_ns = busy_ns;
	if (busy_ns > outcome->busy_ns)
		outcome->busy_ns = busy_ns;
	at->nended++;
	stage->nrunning--;
}

/* Starts the stream's next operation. */
static void start_one(struct mmc_host *host, uint32_t index)
{
	struct mmc_stage *stage = host->stage;
	struct mmc_host_stream *stream = &host->streams[index];
	uint32_t op_index = stream->nstarted;
	uint32_t number = index * stage->spec->nops + op_index;
	struct mmc_sim_op *op = &stage->ops[number];
	const struct mmc_operation operation =
		mmc_sim_op_arguments(op, host->rank);
	int rv;

	stream->nstarted++;
	stream->start_ns[op_index] = stage->network.now_ns;
	mmc_monitor_on_start(&stage->monitor, number);
	rv = mmc_start(stream->stream, &operation, 0,
		       &stream->requests[op_index]);
	if (rv != MMC_EAGAIN)
		finish(host, index, op_index, rv);
}

/* Sets the timer of a stream's next start, if it has operations left. */
static void plan_next(struct mmc_host *host, uint32_t index)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	struct mmc_network *network = &host->stage->network;
	uint64_t gap_ns = mmc_prng_below(&host->prng, spec->gap_spread_ns);

	if (host->streams[index].nstarted < spec->nops)
		mmc_network_at(
			network,
			mmc_host_after_stall(host, network->now_ns + gap_ns),
			MMC_TIMER_START, host->rank * spec->nstreams + index);
}

void mmc_program_start(struct mmc_host *host, uint32_t index)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	struct mmc_host_stream *stream = &host->streams[index];

	if (host->dead)
		return;
	do {
		start_one(host, index);
	} while (spec->pipelined && stream->nstarted < spec->nops);
	if (stream->nended == stream->nstarted)
		plan_next(host, index);
	mmc_host_wake_at(host, host->stage->network.now_ns);
}

static void poll_stream(struct mmc_host *host, uint32_t index)
{
	struct mmc_host_stream *stream = &host->streams[index];

	for (uint32_t op = 0; op < stream->nstarted; op++) {
		struct mmc_request *request = stream->requests[op];
		int rv = request ? mmc_request_wait(request, 0) : MMC_EAGAIN;

		if (rv == MMC_EAGAIN)
			continue;
		finish(host, index, op, rv);
		if (stream->nended == stream->nstarted)
			plan_next(host, index);
	}
}

void mmc_program_poll(struct mmc_host *host)
{
	if (host->stage->trace)
		mmc_tracing_note_repairs(host->engine);
	for (uint32_t i = 0;
	     host->stage->trace && i < host->stage->spec->nstreams; i++)
		note_turn(host, i);
	for (uint32_t i = 0; i < host->stage->spec->nstreams; i++)
		if (host->streams[i].nended < host->streams[i].nstarted)
			poll_stream(host, i);
}

void mmc_program_cancel(struct mmc_host *host)
{
	const struct mmc_sim_spec *spec = host->stage->spec;

	if (host->dead)
		return;
	for (uint32_t i = 0; i < spec->nstreams; i++)
		for (uint32_t op = 0; op < host->streams[i].nstarted; op++)
			if (host->streams[i].requests[op])
				mmc_request_cancel(
					host->streams[i].requests[op]);
	mmc_program_poll(host);
	mmc_host_wake_at(host, host->stage->network.now_ns);
}
