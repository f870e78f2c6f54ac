/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/receive.h"

#include <string.h>

#include "engine/crc32c.h"
#include "engine/probe.h"
#include "engine/survey.h"

/*
 * The cookie of a placement that completes later says which chunk it is. From the
 * lowest bit on it holds the chunk (30 bits), the slot of its epoch (3 bits), and the
 * stream's index in the team.
 */
#define COOKIE_SLOT_SHIFT 30
#define COOKIE_STREAM_SHIFT 33

_Static_assert(MMC_INDEX_MASK < UINT64_C(1) << COOKIE_SLOT_SHIFT,
	       "a chunk fits below the slot");
_Static_assert(MMC_EPOCHS_OPEN_MAX ==
		       1 << (COOKIE_STREAM_SHIFT - COOKIE_SLOT_SHIFT),
	       "a slot fits below the stream");

static uint64_t cookie_of(const struct mmc_request *request, uint32_t chunk)
{
	uint64_t slot = mmc_epochs_slot(mmc_op_epoch(request->op));

	return (uint64_t)request->stream->index << COOKIE_STREAM_SHIFT |
	       slot << COOKIE_SLOT_SHIFT | chunk;
}

void mmc_team_on_placed(struct mmc_team *team, uint64_t cookie)
{
	struct mmc_stream *stream =
		team->streams[cookie >> COOKIE_STREAM_SHIFT];
	uint64_t slot = cookie >> COOKIE_SLOT_SHIFT & (MMC_EPOCHS_OPEN_MAX - 1);
	struct mmc_request *request = stream->requests[slot];

	stream->needs_poll = true;
	mmc_op_on_placed(request->op, cookie & MMC_INDEX_MASK);
}

void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes)
{
	struct mmc_endpoint *endpoint = request->stream->team->endpoint;
	uint8_t *to = mmc_request_address(request, chunk);

	/* The device may have put the payload in its place already. */
	if (to == payload)
		mmc_count(&request->stream->counters,
			  MMC_COUNT_ZERO_COPY_CHUNKS, 1);
	else if (endpoint->driver->place == NULL)
		memcpy(to, payload, nbytes);
	else if (endpoint->driver->place(endpoint, to, payload, nbytes,
					 cookie_of(request, chunk)) != 0)
		return;
	mmc_op_on_placed(request->op, chunk);
}

void mmc_request_receive_chunk(struct mmc_request *request, uint32_t source,
			       uint32_t index, const uint8_t *payload,
			       uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;

	switch (mmc_op_on_chunk(request->op, source, index, nbytes, now_ns)) {
	case MMC_VERDICT_FOREIGN:
		mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return;
	case MMC_VERDICT_DUPLICATE:
		return;
	case MMC_VERDICT_PLACE:
		mmc_request_place(request, index & MMC_INDEX_MASK, payload,
				  nbytes);
	}
}

static void receive_chunk(struct mmc_stream *stream, uint32_t source,
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

	if (op != NULL) {
		mmc_request_receive_chunk(mmc_stream_request(stream, op),
					  source, header->index, payload,
					  nbytes, now_ns);
	} else if (!mmc_epoch_after(header->epoch, mmc_epochs_last(epochs))) {
		mmc_count(&stream->counters, MMC_COUNT_RX_DUPLICATE_CHUNKS, 1);
		if (!(header->index & MMC_INDEX_REPAIR)) {
			/*
			 * Both paths must learn of it: the next operation begins
			 * with the team's, and one that is under way will replace
			 * the team's by the stream's at its end.
			 */
			mmc_path_late(&stream->team->path);
			mmc_epochs_on_late_chunk(epochs);
		}
	} else if (!mmc_epochs_is_next(epochs, header->epoch)) {
		mmc_count(&stream->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
	} else {
		bool kept = mmc_parking_keep(&stream->parking, &early, payload);

		mmc_count(&stream->counters,
			  kept ? MMC_COUNT_RX_PARKED_DATAGRAMS
			       : MMC_COUNT_RX_UNPARKED_DATAGRAMS,
			  1);
	}
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

/* Returns what a datagram carries behind `head_bytes` of header and CRC. */
static const uint8_t *body_of(const struct mmc_event *event,
			      uint32_t head_bytes)
{
	return event->body != NULL ? event->body : event->bytes + head_bytes;
}

static bool crc_is_right(const struct mmc_event *event)
{
	const uint32_t head_bytes = MMC_HEADER_BYTES + MMC_CRC_BYTES;
	uint32_t crc = mmc_crc32c(0, event->bytes, MMC_HEADER_BYTES);

	crc = mmc_crc32c(crc, body_of(event, head_bytes),
			 event->nbytes - head_bytes);
	return crc == mmc_get_u32(event->bytes + MMC_HEADER_BYTES);
}

/* Handles a datagram of the team's own channel: a probe, or one of a survey. */
static void receive_own(struct mmc_team *team, uint32_t source,
			const struct mmc_header *header, const uint8_t *body,
			uint32_t nbytes, uint64_t now_ns)
{
	if (header->index == MMC_INDEX_CONTROL)
		mmc_team_on_probe(team, source, header, nbytes);
	else
		mmc_team_on_survey(team, source, header, body, nbytes, now_ns);
}

void mmc_team_receive(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns)
{
	enum mmc_checksum checksum = team->options.checksum;
	uint32_t head_bytes = MMC_HEADER_BYTES;
	struct mmc_stream *stream;
	struct mmc_header header;
	struct mmc_message message;
	const uint8_t *body;
	uint32_t body_bytes;

	if (event->source >= team->options.nranks) {
		mmc_count(&team->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return;
	}
	if (checksum == MMC_CHECKSUM_FULL)
		head_bytes += MMC_CRC_BYTES;
	if (mmc_header_decode(&header, event->bytes, event->nbytes, checksum) !=
		    0 ||
	    (checksum == MMC_CHECKSUM_FULL && !crc_is_right(event))) {
		mmc_count(&team->counters, MMC_COUNT_RX_CORRUPT_DATAGRAMS, 1);
		return;
	}
	body = body_of(event, head_bytes);
	body_bytes = event->nbytes - head_bytes;
	if (header.channel != 0 &&
	    header.channel == (team->options.channel & MMC_CHANNEL_MASK)) {
		receive_own(team, event->source, &header, body, body_bytes,
			    now_ns);
		return;
	}
	stream = find_stream(team, header.channel);
	if (stream == NULL) {
		mmc_count(&team->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return;
	}
	stream->needs_poll = true;
	mmc_count_received(&stream->counters, mmc_header_traffic(header.index),
			   event->nbytes);
	if (!(header.index & MMC_INDEX_CONTROL))
		receive_chunk(stream, event->source, &header, body, body_bytes,
			      now_ns);
	else if (mmc_message_decode(&message, header.index & MMC_INDEX_MASK,
				    body, body_bytes) == 0)
		mmc_epochs_on_message(&stream->epochs, event->source,
				      header.epoch, &message, now_ns);
	else
		mmc_count(&stream->counters, MMC_COUNT_RX_CORRUPT_DATAGRAMS, 1);
}
