/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/send.h"

#include <string.h>

#include "engine/crc32c.h"
#include "engine/predictor.h"
#include "support/assert.h"

#define HEAD_BYTES_MAX (MMC_HEADER_BYTES + MMC_CRC_BYTES)

_Static_assert(MMC_BATCH_DATAGRAMS_MAX <= MMC_BATCH_CHUNKS_WIDE,
	       "the batch that an endpoint asks for fits into one SEND");

/*
 * Appends the CRC to a head that so far holds the header, if the team uses CRCs.
 * Returns the head's length.
 */
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
		/*
		 * With zero-copy receive the last subgroup carries no chain, so
		 * control messages use up no receive that aims at a place.
		 */
		.subgroup = stream->team->options.zero_copy
				    ? stream->team->options.subgroups - 1
				    : 0,
		.control = true,
	};

	memcpy(head, bytes, MMC_HEADER_BYTES);
	parcel.head_bytes =
		finish_head(stream->team, head, parcel.body, parcel.body_bytes);
	mmc_count_sent(&stream->counters, MMC_TRAFFIC_CONTROL,
		       parcel.head_bytes + parcel.body_bytes, 1);
	return endpoint->driver->send(endpoint, &parcel, 1);
}

/*
 * Returns where the bytes of `chunk` are: in the user's buffer until the operation is
 * done, then in the copy that serves others.
 */
static const uint8_t *chunk_bytes_of(const struct mmc_request *request,
				     uint32_t chunk)
{
	const struct mmc_op *op = request->op;

	if (!mmc_op_is_reported(op))
		return mmc_request_address(request, chunk);
	return request->copy->bytes +
	       (mmc_layout_offset(mmc_op_layout(op), chunk) -
		mmc_op_copied(op).offset_bytes);
}

/* Returns the parcel of one chunk. It refers to `head`, which it has written. */
static struct mmc_parcel wrap_chunk(const struct mmc_request *request,
				    const struct mmc_action *action,
				    uint32_t chunk, uint8_t *head)
{
	const struct mmc_team *team = request->stream->team;
	const struct mmc_op *op = request->op;
	struct mmc_header header = mmc_op_header(op, chunk, action->repair);
	struct mmc_parcel parcel = {
		.head = head,
		.body = chunk_bytes_of(request, chunk),
		.body_bytes = mmc_layout_payload(mmc_op_layout(op), chunk),
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
	mmc_count_sent(&stream->counters,
		       action->repair ? MMC_TRAFFIC_REPAIR
				      : MMC_TRAFFIC_MULTICAST,
		       nbytes, count);
	return endpoint->driver->send(endpoint, parcels, count);
}
