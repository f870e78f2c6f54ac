/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/receive.h"

#include <string.h>

#include "engine/crc32c.h"
#include "engine/probe.h"
#include "engine/survey.h"

/*
 * Returns the cookie of a placement that completes later: which chunk of which of a
 * stream's open operations it is.
 */
static uint64_t cookie_of(const struct mmc_request *request, uint32_t chunk)
{
	uint64_t slot = request->op->config.epoch % MMC_EPOCHS_OPEN_MAX;

	return (uint64_t)request->stream->index << 33 | slot << 30 | chunk;
}

void mmc_team_placed(struct mmc_team *team, uint64_t cookie)
{
	struct mmc_stream *stream = team->streams[cookie >> 33];
	struct mmc_request *request =
		stream->requests[cookie >> 30 & (MMC_EPOCHS_OPEN_MAX - 1)];

	_Static_assert(MMC_EPOCHS_OPEN_MAX == 8, "a slot takes 3 bits");
	stream->stirred = true;
	mmc_op_on_placed(request->op, cookie & MMC_INDEX_MASK);
}

void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes)
{
	struct mmc_endpoint *endpoint = request->stream->team->endpoint;
	uint8_t *to = mmc_request_address(request, chunk);

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

void mmc_request_chunk(struct mmc_request *request, uint32_t source,
		       uint32_t index, const uint8_t *payload, uint32_t nbytes,
		       uint64_t now_ns)
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
		mmc_request_chunk(mmc_stream_request(stream, op), source,
				  header->index, payload, nbytes, now_ns);
	} else if (!mmc_epoch_after(header->epoch, epochs->last)) {
		mmc_count(&stream->counters, MMC_COUNT_RX_DUPLICATE_CHUNKS, 1);
		if (!(header->index & MMC_INDEX_REPAIR)) {
			/*
			 * An operation starts with the team's path, and at its end
			 * replaces that by the stream's: both learn.
			 */
			mmc_path_late(&stream->team->path);
			mmc_path_late(&epochs->path);
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

static struct mmc_stream *find_stream(struct mmc_team *team, uint64_t channel)
{
	uint32_t place;

	if (team->last != NULL && team->last->epochs.channel == channel)
		return team->last;
	place = mmc_team_channel_place(team, channel);
	if (place == team->nopen ||
	    team->by_channel[place]->epochs.channel != channel)
		return NULL;
	return team->last = team->by_channel[place];
}

/* Returns the body of a datagram, behind `head_bytes` of header and CRC. */
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

/* Counts a datagram by its kind; the counters of each kind are adjacent. */
static void count_traffic(struct mmc_counters *counters, uint32_t index,
			  uint32_t nbytes)
{
	unsigned bytes = MMC_COUNT_RX_MULTICAST_BYTES +
			 2 * (unsigned)mmc_header_traffic(index);

	counters->value[bytes] += nbytes;
	counters->value[bytes + 1]++;
}

/* Handles a datagram of the team's own channel: a probe, or one of a survey. */
static void receive_own(struct mmc_team *team, uint32_t source,
			const struct mmc_header *header, const uint8_t *body,
			uint32_t nbytes, uint64_t now_ns)
{
	if (header->index == MMC_INDEX_CONTROL)
		mmc_team_probed(team, source, header, nbytes);
	else
		mmc_team_surveyed(team, source, header, body, nbytes, now_ns);
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
	stream->stirred = true;
	count_traffic(&stream->counters, header.index, event->nbytes);
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
