/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/receive.h"

#include <string.h>

#include "engine/blocks.h"
#include "engine/datagram.h"
#include "engine/parity.h"
#include "engine/probe.h"
#include "engine/refusal.h"
#include "engine/survey.h"
#include "support/assert.h"

/* ---- placing ---- */

/*
 * The cookie of a placement that completes later says which chunk it is. From the
 * lowest bit on it holds the chunk (30 bits), a 0, the slot of its epoch (3 bits), and
 * the stream's index in the team. So the number behind the cookie of an operation's last
 * chunk is no cookie, and consecutive cookies are of one operation.
 */
#define COOKIE_SLOT_SHIFT 31
#define COOKIE_STREAM_SHIFT 34

_Static_assert(MMC_CHUNKS_MAX < UINT64_C(1) << COOKIE_SLOT_SHIFT,
	       "a chunk, and the number behind the last, fit below the slot");
_Static_assert(MMC_EPOCHS_OPEN_MAX ==
		       1 << (COOKIE_STREAM_SHIFT - COOKIE_SLOT_SHIFT),
	       "a slot fits below the stream");

static uint64_t cookie_of(const struct mmc_request *request, uint32_t chunk)
{
	uint64_t slot = mmc_epochs_slot(mmc_op_epoch(request->op));

	return (uint64_t)request->stream->index << COOKIE_STREAM_SHIFT |
	       slot << COOKIE_SLOT_SHIFT | chunk;
}

void mmc_team_on_placed(struct mmc_team *team, const struct mmc_event *event)
{
	uint64_t cookie = event->cookie;
	struct mmc_stream *stream =
		team->streams[cookie >> COOKIE_STREAM_SHIFT];
	uint64_t slot = cookie >> COOKIE_SLOT_SHIFT & (MMC_EPOCHS_OPEN_MAX - 1);
	const struct mmc_run run = {
		.first = cookie & MMC_INDEX_MASK,
		.count = event->count,
	};

	MMC_ASSERT(run.count > 0);
	stream->needs_poll = true;
	mmc_op_on_run_placed(stream->requests[slot]->op, run);
}

/* Copies payloads where the driver does not: see `place` of struct mmc_driver. */
static int copy(struct mmc_endpoint *endpoint, void *to,
		const struct mmc_event *datagrams, uint32_t ndatagrams,
		uint32_t head_bytes, uint64_t cookie)
{
	uint8_t *place = to;

	(void)endpoint;
	(void)cookie;
	for (uint32_t i = 0; i < ndatagrams; i++) {
		uint32_t nbytes = datagrams[i].nbytes - head_bytes;

		memcpy(place, mmc_event_body(&datagrams[i], head_bytes),
		       nbytes);
		place += nbytes;
	}
	return 0;
}

/*
 * Puts the payloads of a run in their places, from `to` on. Returns whether they are there
 * now; if not, the driver will tell.
 */
static bool put(const struct mmc_request *request, struct mmc_run run,
		uint8_t *to, const struct mmc_event *datagrams,
		uint32_t head_bytes)
{
	struct mmc_endpoint *endpoint = request->stream->team->endpoint;
	const struct mmc_driver *driver = endpoint->driver;
	uint64_t cookie = cookie_of(request, run.first);

	return (driver->place != NULL ? driver->place : copy)(
		       endpoint, to, datagrams, run.count, head_bytes,
		       cookie) == 0;
}

void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes)
{
	const struct mmc_run run = { .first = chunk, .count = 1 };
	const struct mmc_event event = { .body = payload, .nbytes = nbytes };
	uint8_t *to = mmc_request_address(request, chunk);

	/* The device may have put the payload in its place already. */
	if (to == payload)
		mmc_count(&request->stream->counters,
			  MMC_COUNT_ZERO_COPY_CHUNKS, 1);
	else if (!put(request, run, to, &event, 0))
		return;
	mmc_op_on_placed(request->op, chunk);
}

bool mmc_request_receive_chunk(struct mmc_request *request, uint32_t source,
			       uint32_t index, const uint8_t *payload,
			       uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;

	switch (mmc_op_on_chunk(request->op, source, index, nbytes, now_ns)) {
	case MMC_VERDICT_FOREIGN:
		mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return false;
	case MMC_VERDICT_DUPLICATE:
		break;
	case MMC_VERDICT_PLACE:
		mmc_request_place(request, index & MMC_INDEX_MASK, payload,
				  nbytes);
	}
	return true;
}

/* Tells the operation that a run of chunks, which may be empty, is in its places. */
static void note_placed(struct mmc_request *request, struct mmc_run placed)
{
	if (placed.count > 0)
		mmc_op_on_run_placed(request->op, placed);
}

/*
 * Puts the payloads of a run in their places, which the operation has claimed, except for
 * those that the device has put there.
 */
static void place_some(struct mmc_request *request, struct mmc_run run,
		       uint8_t *to, const struct mmc_event *events,
		       uint32_t head_bytes)
{
	struct mmc_stream *stream = request->stream;
	uint32_t chunk_bytes = stream->team->options.chunk_bytes;
	struct mmc_run placed = { .first = run.first };
	struct mmc_run one = { .first = run.first, .count = 1 };
	uint32_t ndirect = 0;

	for (uint32_t i = 0; i < run.count; i++, one.first++) {
		if (mmc_event_body(&events[i], head_bytes) == to) {
			ndirect++;
		} else if (!put(request, one, to, &events[i], head_bytes)) {
			note_placed(request, placed);
			placed = (struct mmc_run){ .first = one.first + 1 };
			to += chunk_bytes;
			continue;
		}
		placed.count++;
		to += chunk_bytes;
	}
	note_placed(request, placed);
	mmc_count(&stream->counters, MMC_COUNT_ZERO_COPY_CHUNKS, ndirect);
}

/* Puts the payloads of a run in their places, which the operation has claimed. */
static void place_run(struct mmc_request *request, struct mmc_run run,
		      const struct mmc_event *events, uint32_t head_bytes)
{
	const struct mmc_endpoint *endpoint = request->stream->team->endpoint;
	uint8_t *to = mmc_request_address(request, run.first);

	if (endpoint->driver->begin_placement != NULL)
		place_some(request, run, to, events, head_bytes);
	else if (put(request, run, to, events, head_bytes))
		mmc_op_on_run_placed(request->op, run);
}

/* Takes in a run of several chunks. Returns false if they must be taken one by one. */
static bool receive_run(struct mmc_stream *stream,
			const struct mmc_header *first,
			const struct mmc_event *events, uint32_t count,
			uint64_t now_ns)
{
	const struct mmc_run run = { .first = first->index, .count = count };
	uint32_t head_bytes = mmc_team_head_bytes(stream->team);
	struct mmc_op *op = mmc_epochs_find(&stream->epochs, first->epoch);

	if (op == NULL ||
	    !mmc_op_on_run(op, events[0].source, run,
			   events[count - 1].nbytes - head_bytes, now_ns))
		return false;
	mmc_count_received(&stream->counters, MMC_TRAFFIC_MULTICAST,
			   (uint64_t)(count - 1) * events->nbytes +
				   events[count - 1].nbytes,
			   count);
	place_run(mmc_stream_request(stream, op), run, events, head_bytes);
	return true;
}

/* Keeps a chunk for an operation that has not started here. */
static void park(struct mmc_stream *stream, const struct mmc_parked *early,
		 const uint8_t *payload)
{
	static const enum mmc_counter counters[] = {
		[MMC_PARKING_KEPT] = MMC_COUNT_RX_PARKED_DATAGRAMS,
		[MMC_PARKING_REPEATED] = MMC_COUNT_RX_DUPLICATE_CHUNKS,
		[MMC_PARKING_FULL] = MMC_COUNT_RX_UNPARKED_DATAGRAMS,
	};

	mmc_count(&stream->counters,
		  counters[mmc_parking_keep(&stream->parking, early, payload)],
		  1);
}

void mmc_stream_note_late(struct mmc_stream *stream)
{
	/*
	 * Both paths must learn of it: the next operation begins with the team's, and one
	 * that is under way will replace the team's by the stream's at its end.
	 */
	mmc_path_late(&stream->team->path);
	mmc_epochs_on_late_chunk(&stream->epochs);
}

/* Takes in a chunk. Returns false if it is foreign. */
static bool receive_chunk(struct mmc_stream *stream, uint32_t source,
			  const struct mmc_header *header,
			  const uint8_t *payload, uint32_t nbytes,
			  uint64_t now_ns)
{
	struct mmc_epochs *epochs = &stream->epochs;
	struct mmc_op *op = mmc_epochs_find(epochs, header->epoch);
	struct mmc_parked early = {
		.epoch = header->epoch,
		.source = source,
		.index = header->index,
		.nbytes = nbytes,
	};

	if (op != NULL)
		return mmc_request_receive_chunk(mmc_stream_request(stream, op),
						 source, header->index, payload,
						 nbytes, now_ns);
	if (!mmc_epoch_after(header->epoch, mmc_epochs_last(epochs))) {
		mmc_count(&stream->counters, MMC_COUNT_RX_DUPLICATE_CHUNKS, 1);
		if (!(header->index & MMC_INDEX_REPAIR))
			mmc_stream_note_late(stream);
	} else if (!mmc_epochs_is_next(epochs, header->epoch)) {
		mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return false;
	} else {
		park(stream, &early, payload);
	}
	return true;
}

/* Returns the open stream of `channel`, or NULL. */
static struct mmc_stream *find_stream(struct mmc_team *team, uint64_t channel)
{
	uint32_t index;

	if (team->latest_stream != NULL &&
	    mmc_epochs_channel(&team->latest_stream->epochs) == channel)
		return team->latest_stream;
	index = mmc_team_channel_index(team, channel);
	if (index == team->nopen ||
	    mmc_epochs_channel(&team->by_channel[index]->epochs) != channel)
		return NULL;
	return team->latest_stream = team->by_channel[index];
}

/*
 * Handles a datagram of the team's own channel: a probe, or one of a survey. Returns
 * false if it is foreign.
 */
static bool receive_own(struct mmc_team *team, const struct mmc_header *header,
			const struct mmc_event *event, uint64_t now_ns)
{
	uint32_t head_bytes = mmc_team_head_bytes(team);
	uint32_t nbytes = event->nbytes - head_bytes;

	if (header->index == MMC_INDEX_CONTROL)
		return mmc_team_on_probe(team, event->source, header, nbytes);
	return mmc_team_on_survey(team, event->source, header,
				  mmc_event_body(event, head_bytes), nbytes,
				  now_ns);
}

/* Handles a control message. */
static void receive_message(struct mmc_stream *stream,
			    const struct mmc_header *header,
			    const struct mmc_event *event, const uint8_t *body,
			    uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_message message;

	if (mmc_message_decode(&message, header->index & MMC_INDEX_MASK, body,
			       nbytes) != 0) {
		mmc_count(&stream->counters, MMC_COUNT_RX_MALFORMED_DATAGRAMS,
			  1);
		mmc_team_note_refusal(stream->team, event,
				      MMC_REFUSED_MALFORMED, now_ns);
		return;
	}
	if (!mmc_epochs_allow(&stream->epochs, header->epoch, &message)) {
		mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		mmc_team_note_refusal(stream->team, event, MMC_REFUSED_FOREIGN,
				      now_ns);
		return;
	}
	/* The record goes first: what disagrees with this rank's operation is not placed. */
	mmc_epochs_on_message(&stream->epochs, event->source, header->epoch,
			      &message, now_ns);
	if (message.echo_us != 0)
		mmc_path_adopt_trip(&stream->team->path,
				    mmc_epochs_path(&stream->epochs));
	if (mmc_message_brings(&message) &&
	    !mmc_stream_receive_part(stream, event->source, header->epoch,
				     &message, now_ns))
		mmc_team_note_refusal(stream->team, event, MMC_REFUSED_FOREIGN,
				      now_ns);
}

/* Takes in a chunk or its parity. Returns false if it is foreign. */
static bool receive_payload(struct mmc_stream *stream,
			    const struct mmc_header *header,
			    const struct mmc_event *event, const uint8_t *body,
			    uint32_t nbytes, uint64_t now_ns)
{
	if (!(header->index & MMC_INDEX_CONTROL))
		return receive_chunk(stream, event->source, header, body,
				     nbytes, now_ns);
	if (mmc_stream_may_code(stream) &&
	    mmc_stream_receive_parity(stream, header, event, now_ns))
		return true;
	mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
	return false;
}

/* Handles a datagram of a stream that is no part of a run. */
static void receive_one(struct mmc_stream *stream,
			const struct mmc_header *header,
			const struct mmc_event *event, uint64_t now_ns)
{
	uint32_t head_bytes = mmc_team_head_bytes(stream->team);
	const uint8_t *body = mmc_event_body(event, head_bytes);
	uint32_t nbytes = event->nbytes - head_bytes;

	mmc_count_received(&stream->counters, mmc_header_traffic(header->index),
			   event->nbytes, 1);
	if (mmc_header_is_control(header->index))
		receive_message(stream, header, event, body, nbytes, now_ns);
	else if (!receive_payload(stream, header, event, body, nbytes, now_ns))
		mmc_team_note_refusal(stream->team, event, MMC_REFUSED_FOREIGN,
				      now_ns);
}

unsigned mmc_team_receive(struct mmc_team *team, const struct mmc_event *events,
			  unsigned nevents, uint64_t now_ns)
{
	struct mmc_stream *stream;
	struct mmc_header header;
	unsigned count;
	int rv;

	if (events->source >= team->options.nranks) {
		mmc_team_refuse(team, events, MMC_REFUSED_FOREIGN, now_ns);
		return 1;
	}
	rv = mmc_team_decode(team, events, &header);
	if (rv != 0) {
		mmc_team_refuse(team, events,
				rv == -MMC_ECORRUPT ? MMC_REFUSED_CORRUPT
						    : MMC_REFUSED_MALFORMED,
				now_ns);
		return 1;
	}
	if (header.channel != 0 &&
	    header.channel == (team->options.channel & MMC_CHANNEL_MASK)) {
		if (!receive_own(team, &header, events, now_ns))
			mmc_team_refuse(team, events, MMC_REFUSED_FOREIGN,
					now_ns);
		return 1;
	}
	stream = find_stream(team, header.channel);
	if (stream == NULL) {
		mmc_team_refuse(team, events, MMC_REFUSED_FOREIGN, now_ns);
		return 1;
	}
	stream->needs_poll = true;
	if (header.index < MMC_INDEX_REPAIR) {
		mmc_team_expect(team, &header);
		count = nevents == 1 ? 1
				     : mmc_team_find_run(team, events, nevents,
							 &header);
		if (count > 1 &&
		    receive_run(stream, &header, events, count, now_ns))
			return count;
	}
	receive_one(stream, &header, events, now_ns);
	return 1;
}
