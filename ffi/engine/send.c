/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/send.h"

#include <string.h>

#include "engine/crc32c.h"
#include "engine/predictor.h"
#include "support/assert.h"

#define HEAD_BYTES_MAX (MMC_HEADER_BYTES + MMC_CRC_BYTES)

_Static_assert(MMC_BATCH_DATAGRAMS_MAX <= MMC_BATCH_CHUNKS_WIDE,
	       "a batch that an endpoint asks for fits");

/* Adds the CRC, if any, to a head that holds the header. Returns its length. */
static uint32_t finish_head(const struct mmc_team *team, uint8_t *head,
			    const uint8_t *body, uint32_t body_bytes)
{
	uint32_t crc;

	if (team->options.checksum != MMC_CHECKSUM_FULL)
		return MMC_HEADER_BYTES;
	crc = mmc_crc32c(0, head, MMC_HEADER_BYTES);
	crc = mmc_crc32c(crc, body, body_bytes);
	mmc_put_u32(head + MMC_HEADER_BYTES, crc);
	return HEAD_BYTES_MAX;
}

/* Counts datagrams by kind; the counters of each kind are adjacent. */
static void count_traffic(struct mmc_counters *counters,
			  enum mmc_traffic traffic, uint64_t nbytes,
			  uint64_t ndatagrams)
{
	unsigned bytes = MMC_COUNT_TX_MULTICAST_BYTES + 2 * (unsigned)traffic;

	counters->value[bytes] += nbytes;
	counters->value[bytes + 1] += ndatagrams;
}

int mmc_stream_send_control(struct mmc_stream *stream, uint32_t peer,
			    const uint8_t *bytes, uint32_t nbytes)
{
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	uint8_t head[HEAD_BYTES_MAX];
	struct mmc_parcel parcel = {
		.head = head,
		.body = bytes + MMC_HEADER_BYTES,
		.body_bytes = nbytes - MMC_HEADER_BYTES,
		.peer = peer,
		/* With zero-copy receive the last subgroup carries no chain. */
		.subgroup = stream->team->options.zero_copy
				    ? stream->team->options.subgroups - 1
				    : 0,
		.control = true,
	};

	memcpy(head, bytes, MMC_HEADER_BYTES);
	parcel.head_bytes =
		finish_head(stream->team, head, parcel.body, parcel.body_bytes);
	count_traffic(&stream->counters, MMC_TRAFFIC_CONTROL,
		      parcel.head_bytes + parcel.body_bytes, 1);
	return endpoint->driver->send(endpoint, &parcel, 1);
}

/* Returns where the bytes of `chunk` are now: in the user's buffer or in the copy. */
static const uint8_t *chunk_bytes_of(const struct mmc_request *request,
				     uint32_t chunk)
{
	const struct mmc_op *op = request->op;

	if (!mmc_op_is_reported(op))
		return mmc_request_address(request, chunk);
	return request->copy->bytes +
	       (mmc_layout_offset(&op->layout, chunk) - op->own.offset_bytes);
}

/* Makes the parcel of one chunk; `head` must last until it is sent. */
static struct mmc_parcel wrap_chunk(const struct mmc_request *request,
				    const struct mmc_action *action,
				    uint32_t chunk, uint8_t *head)
{
	const struct mmc_team *team = request->stream->team;
	const struct mmc_op *op = request->op;
	struct mmc_header header = {
		.channel = op->config.channel,
		.epoch = op->config.epoch,
		.index = chunk | (action->repair ? MMC_INDEX_REPAIR : 0),
	};
	struct mmc_parcel parcel = {
		.head = head,
		.body = chunk_bytes_of(request, chunk),
		.body_bytes = mmc_layout_payload(&op->layout, chunk),
		.peer = action->peer,
		.subgroup = team->options.zero_copy
				    ? mmc_request_subgroup(request, chunk)
				    : chunk % team->options.subgroups,
	};
	uint32_t total_bytes = MMC_HEADER_BYTES + parcel.body_bytes;

	if (team->options.checksum == MMC_CHECKSUM_FULL)
		total_bytes += MMC_CRC_BYTES;
	mmc_header_encode(head, &header, total_bytes, team->options.checksum);
	parcel.head_bytes =
		finish_head(team, head, parcel.body, parcel.body_bytes);
	return parcel;
}

int mmc_request_send(struct mmc_request *request,
		     const struct mmc_action *action)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	struct mmc_parcel parcels[MMC_BATCH_CHUNKS_WIDE];
	uint8_t heads[MMC_BATCH_CHUNKS_WIDE][HEAD_BYTES_MAX];
	uint32_t count = action->run.count;
	uint64_t nbytes = 0;

	MMC_ASSERT(count <= MMC_BATCH_CHUNKS_WIDE);
	for (uint32_t i = 0; i < count; i++) {
		parcels[i] = wrap_chunk(request, action, action->run.first + i,
					heads[i]);
		nbytes += parcels[i].head_bytes + parcels[i].body_bytes;
	}
	count_traffic(&stream->counters,
		      action->repair ? MMC_TRAFFIC_REPAIR
				     : MMC_TRAFFIC_MULTICAST,
		      nbytes, count);
	return endpoint->driver->send(endpoint, parcels, count);
}
