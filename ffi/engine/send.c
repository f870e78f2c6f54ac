/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/send.h"

#include <string.h>

#include "engine/crc32c.h"
#include "engine/parity.h"
#include "engine/predictor.h"
#include "support/assert.h"
#include "support/bits.h"

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
			    const struct mmc_letter *letters, uint32_t count)
{
	const struct mmc_team_options *options = &stream->team->options;
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	struct mmc_parcel parcels[MMC_PARTS_MAX];
	uint8_t heads[MMC_PARTS_MAX][HEAD_BYTES_MAX];
	uint64_t nbytes = 0;

	MMC_ASSERT(count <= MMC_PARTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		struct mmc_parcel *parcel = &parcels[i];

		*parcel = (struct mmc_parcel){
			.head = heads[i],
			.body = letters[i].bytes + MMC_HEADER_BYTES,
			.body_bytes = letters[i].nbytes - MMC_HEADER_BYTES,
			.peer = peer,
			/*
			 * With zero-copy receive the last subgroup carries no
			 * chain, so control messages use up no receive that
			 * aims at a place.
			 */
			.subgroup = options->zero_copy ? options->subgroups - 1
						       : 0,
			.control = true,
		};
		memcpy(heads[i], letters[i].bytes, MMC_HEADER_BYTES);
		parcel->head_bytes = finish_head(stream->team, heads[i],
						 parcel->body,
						 parcel->body_bytes);
		nbytes += parcel->head_bytes + parcel->body_bytes;
	}
	mmc_count_sent(&stream->counters, MMC_TRAFFIC_CONTROL, nbytes, count);
	return endpoint->driver->send(endpoint, parcels, count);
}

/* The parcels of one action, with the heads that they point to. */
struct batch {
	struct mmc_parcel parcels[MMC_BATCH_CHUNKS_WIDE];
	uint8_t heads[MMC_BATCH_CHUNKS_WIDE][HEAD_BYTES_MAX];
	uint32_t count;
	uint64_t nbytes; /* of all datagrams together */
};

/*
 * Returns the subgroup to which `chunk` is sent. Chunks that may leave as a train go to
 * the same one, or else there would be no trains.
 */
static uint32_t subgroup_of(const struct mmc_request *request, uint32_t chunk)
{
	const struct mmc_team *team = request->stream->team;
	uint32_t together = mmc_max_u32(team->endpoint->train_datagrams, 1);

	return team->options.zero_copy
		       ? mmc_request_subgroup(request, chunk)
		       : chunk / together % team->options.subgroups;
}

/* Adds a chunk to the batch, whose header has been written to the next head. */
static void add_parcel(struct batch *batch, const struct mmc_team *team,
		       const struct mmc_parcel *parcel)
{
	uint8_t *head = batch->heads[batch->count];
	struct mmc_parcel *added = &batch->parcels[batch->count++];

	*added = *parcel;
	added->head = head;
	added->head_bytes =
		finish_head(team, head, parcel->body, parcel->body_bytes);
	batch->nbytes += added->head_bytes + added->body_bytes;
}

/* Adds consecutive chunks of `block` to the batch. */
static void add_run(struct batch *batch, const struct mmc_request *request,
		    const struct mmc_block *block, struct mmc_run run,
		    const struct mmc_action *action)
{
	const struct mmc_team *team = request->stream->team;
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	enum mmc_checksum checksum = team->options.checksum;
	uint32_t head_bytes = checksum == MMC_CHECKSUM_FULL ? HEAD_BYTES_MAX
							    : MMC_HEADER_BYTES;
	struct mmc_header header =
		mmc_op_header(request->op, run.first, action->repair);
	const struct mmc_header_template template = mmc_header_template(
		&header, head_bytes + layout->chunk_bytes, checksum);
	struct mmc_parcel parcel = {
		.body = mmc_request_held(request, run.first),
		.peer = action->peer,
	};

	for (uint32_t i = 0; i < run.count; i++, header.index++) {
		uint8_t *head = batch->heads[batch->count];

		if (team->options.subgroups > 1)
			parcel.subgroup = subgroup_of(request, run.first + i);
		parcel.body_bytes = mmc_layout_block_payload(
			layout, block, run.first + i - block->first);
		if (parcel.body_bytes == layout->chunk_bytes)
			mmc_header_write(&template, head, header.index);
		else
			mmc_header_encode(head, &header,
					  head_bytes + parcel.body_bytes,
					  checksum);
		add_parcel(batch, team, &parcel);
		parcel.body += parcel.body_bytes;
	}
}

/* Sends the chunks of an action SEND. */
static inline int send_chunks(struct mmc_request *request,
			      const struct mmc_action *action)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	struct mmc_run rest = action->run;
	struct batch batch;

	MMC_ASSERT(rest.count <= MMC_BATCH_CHUNKS_WIDE);
	batch.count = 0;
	batch.nbytes = 0;
	while (rest.count > 0) {
		const struct mmc_block block = mmc_layout_block(
			layout, mmc_layout_owner(layout, rest.first));
		struct mmc_run run = rest;

		run.count = mmc_min_u32(run.count, block.first + block.nchunks -
							   run.first);
		add_run(&batch, request, &block, run, action);
		rest.first += run.count;
		rest.count -= run.count;
	}
	mmc_count_sent(&stream->counters,
		       action->repair ? MMC_TRAFFIC_REPAIR
				      : MMC_TRAFFIC_MULTICAST,
		       batch.nbytes, batch.count);
	return endpoint->driver->send(endpoint, batch.parcels, batch.count);
}

/* Sends the rows of an action PARITY. It is not inlined, for the sake of all other sends. */
__attribute__((noinline, cold)) static int
send_parity(struct mmc_request *request, const struct mmc_action *action)
{
	struct mmc_stream *stream = request->stream;
	const struct mmc_team *team = stream->team;
	struct mmc_endpoint *endpoint = team->endpoint;
	enum mmc_checksum checksum = team->options.checksum;
	uint32_t head_bytes = checksum == MMC_CHECKSUM_FULL ? HEAD_BYTES_MAX
							    : MMC_HEADER_BYTES;
	struct mmc_parcel parcel = {
		.body = mmc_request_encode(request, action, &parcel.body_bytes),
		.peer = action->peer,
		.subgroup = team->options.subgroups > 1
				    ? action->first % team->options.subgroups
				    : 0,
	};
	struct batch batch = { .count = 0 };

	for (uint32_t i = 0; i < action->run.count; i++) {
		const struct mmc_header header =
			mmc_op_parity_header(request->op, action, i);

		mmc_header_encode(batch.heads[i], &header,
				  head_bytes + parcel.body_bytes, checksum);
		add_parcel(&batch, team, &parcel);
		parcel.body += parcel.body_bytes;
	}
	mmc_count_sent(&stream->counters,
		       action->repair ? MMC_TRAFFIC_REPAIR
				      : MMC_TRAFFIC_MULTICAST,
		       batch.nbytes, batch.count);
	return endpoint->driver->send(endpoint, batch.parcels, batch.count);
}

int mmc_request_send(struct mmc_request *request,
		     const struct mmc_action *action)
{
	int rv;

	if (action->kind == MMC_ACTION_PARITY &&
	    mmc_stream_may_code(request->stream))
		rv = send_parity(request, action);
	else
		rv = send_chunks(request, action);
	if (request->stock != NULL && mmc_stream_may_code(request->stream))
		mmc_request_fill_stock(request);
	return rv;
}
