/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/arrival.h"

#include "engine/receive.h"
#include "engine/refusal.h"

/* A cookie holds the epoch, and above it the stream's index in the team. */
#define COOKIE_STREAM_SHIFT 32

uint64_t mmc_arrival_cookie(const struct mmc_request *request)
{
	return (uint64_t)request->stream->index << COOKIE_STREAM_SHIFT |
	       mmc_op_epoch(request->op);
}

/* Returns the stream that a cookie names, or NULL if it is closed or never was. */
static struct mmc_stream *stream_of(const struct mmc_team *team,
				    uint64_t cookie)
{
	uint64_t index = cookie >> COOKIE_STREAM_SHIFT;

	return index < team->nstreams ? team->streams[index] : NULL;
}

/* Offers the chunks to their operation one by one. Returns false if some are foreign. */
static bool take_each(struct mmc_stream *stream, struct mmc_op *op,
		      const struct mmc_event *event, uint64_t now_ns)
{
	uint32_t nbytes = stream->team->options.chunk_bytes;
	uint32_t end = event->first + event->count;
	bool good = true;

	for (uint32_t chunk = event->first; chunk < end; chunk++) {
		if (chunk + 1 == end)
			nbytes = event->nbytes;
		switch (mmc_op_on_chunk(op, event->source, chunk, nbytes,
					now_ns)) {
		case MMC_VERDICT_FOREIGN:
			good = false;
			break;
		case MMC_VERDICT_DUPLICATE:
			break;
		case MMC_VERDICT_PLACE:
			mmc_count(&stream->counters, MMC_COUNT_ZERO_COPY_CHUNKS,
				  1);
			mmc_op_on_placed(op, chunk);
		}
	}
	return good;
}

/* Hands chunks to their operation. Returns false if some are foreign. */
static bool take(struct mmc_stream *stream, struct mmc_op *op,
		 const struct mmc_event *event, uint64_t now_ns)
{
	const struct mmc_run run = {
		.first = event->first,
		.count = event->count,
	};
	uint32_t nchunks = mmc_op_layout(op)->nchunks;

	if (run.first >= nchunks || run.count > nchunks - run.first)
		return false;
	if (run.count == 1 ||
	    !mmc_op_on_run(op, event->source, run, event->nbytes, now_ns))
		return take_each(stream, op, event, now_ns);
	mmc_count(&stream->counters, MMC_COUNT_ZERO_COPY_CHUNKS, run.count);
	mmc_op_on_run_placed(op, run);
	return true;
}

/*
 * Takes chunks of a stream. Returns false if some are foreign. The device places nothing
 * for operations that have not started here, so nothing can be kept for them.
 */
static bool take_in(struct mmc_stream *stream, const struct mmc_event *event,
		    uint64_t now_ns)
{
	uint32_t epoch = (uint32_t)event->cookie;
	struct mmc_op *op = mmc_epochs_find(&stream->epochs, epoch);
	uint32_t count = event->count;

	stream->needs_poll = true;
	mmc_count_received(&stream->counters, MMC_TRAFFIC_MULTICAST,
			   (uint64_t)(count - 1) *
					   stream->team->options.chunk_bytes +
				   event->nbytes,
			   count);
	if (op != NULL)
		return take(stream, op, event, now_ns);
	if (mmc_epoch_after(epoch, mmc_epochs_last(&stream->epochs)))
		return false;
	mmc_count(&stream->counters, MMC_COUNT_RX_DUPLICATE_CHUNKS, count);
	mmc_stream_note_late(stream);
	return true;
}

void mmc_team_on_arrived(struct mmc_team *team, const struct mmc_event *event,
			 uint64_t now_ns)
{
	struct mmc_stream *stream = stream_of(team, event->cookie);

	if (stream == NULL || event->source >= team->options.nranks ||
	    event->count == 0) {
		mmc_team_refuse(team, event, MMC_REFUSED_FOREIGN, now_ns);
		return;
	}
	if (take_in(stream, event, now_ns))
		return;
	mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
	mmc_team_note_refusal(team, event, MMC_REFUSED_FOREIGN, now_ns);
}
