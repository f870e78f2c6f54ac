/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/forward.h"

#include <mpimcast/mmc.h>
#include <stdio.h>

#include "node/agree.h"
#include "node/failing.h"
#include "node/places.h"
#include "support/error.h"

/* Returns whether all members have filled the next piece to be forwarded. */
static bool is_filled(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	if (!mmc_cursor_before(stream->nforwarded, stream->nfilled))
		return false;
	for (uint32_t i = 0; i < stream->node->nmembers; i++)
		if (!mmc_node_has_filled(request, i, stream->nforwarded))
			return false;
	return true;
}

/* Describes the exchange of what a piece takes of the root's block, at `recv`. */
static struct mmc_operation
exchange_root(const struct mmc_node_request *request, uint64_t nbytes,
	      uint8_t *recv)
{
	return (struct mmc_operation){
		.kind = MMC_BCAST,
		.root = request->stream->map.nodes[request->operation.root],
		.block_bytes = nbytes,
		.recv = recv,
	};
}

/* Describes the exchange of a piece whose parts lie node by node in its slot. */
static struct mmc_operation
exchange_slot(const struct mmc_node_request *request, uint32_t index)
{
	struct mmc_node_stream *stream = request->stream;
	uint8_t *slot = mmc_node_slot(stream, stream->nforwarded);
	uint32_t root = request->operation.root;

	if (request->operation.kind == MMC_BCAST)
		return exchange_root(request,
				     mmc_node_part(request, index, root).nbytes,
				     slot);
	mmc_node_lay_out(request, index);
	return (struct mmc_operation){
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = stream->nodes_bytes,
		.recv = slot,
	};
}

/* Describes the exchange of a piece whose parts lie in the result itself. */
static struct mmc_operation
exchange_in_place(const struct mmc_node_request *request, uint32_t index)
{
	struct mmc_node_stream *stream = request->stream;
	uint8_t *result = request->operation.recv;
	uint64_t begin_bytes = 0;
	struct mmc_part part;

	if (request->operation.kind == MMC_BCAST) {
		part = mmc_pieces_part(&request->pieces, index, 0);
		return exchange_root(request, part.nbytes,
				     result + part.offset_bytes);
	}
	mmc_node_add_up(request);
	for (uint32_t node = 0; node < stream->map.nnodes; node++) {
		part = mmc_pieces_part(&request->pieces, index, node);
		stream->nodes_offsets[node] = begin_bytes + part.offset_bytes;
		begin_bytes += stream->nodes_bytes[node];
		stream->nodes_bytes[node] = part.nbytes;
	}
	return (struct mmc_operation){
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = stream->nodes_bytes,
		.offsets_bytes = stream->nodes_offsets,
		.recv = result,
	};
}

/* Begins the exchange of the next piece. Returns whether it has begun. */
static bool begin(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t index = mmc_node_request_index(request, stream->nforwarded);
	struct mmc_request **forwarded =
		&stream->forwarded[stream->nforwarded % stream->options.nslots];
	struct mmc_operation operation =
		request->delivery == MMC_NODE_IN_PLACE
			? exchange_in_place(request, index)
			: exchange_slot(request, index);
	struct mmc_failure failure;
	int rv;

	operation.notifies = request->operation.notifies;
	rv = mmc_start(stream->options.between, &operation, 0, forwarded);
	/* One that is complete, or has failed, already is taken as any other. */
	if (rv >= 0 || *forwarded != NULL)
		return true;
	failure = mmc_node_failure(request, rv, stream->options.rank);
	mmc_node_fail(stream, &failure);
	return false;
}

bool mmc_node_forward(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	/*
	 * A NULL among the forwarded pieces is one that has arrived, or that this rank
	 * need not exchange. Even over such a piece it passes only once all members
	 * have filled it: another operation may have a piece of this rail there.
	 */
	if (!is_filled(request))
		return false;
	if (mmc_node_request_carries(request, stream->nforwarded) &&
	    !begin(request))
		return false;
	stream->nforwarded++;
	return true;
}

/* Fails the stream because the oldest piece that was being forwarded has failed. */
static void fail(struct mmc_node_stream *stream, struct mmc_request *forwarded)
{
	struct mmc_failure failure;

	mmc_request_failure(forwarded, &failure);
	if (failure.error == -MMC_EPOISONED)
		mmc_stream_failure(stream->options.between, &failure);
	if (failure.culprit < stream->map.nnodes)
		failure.culprit = mmc_node_peers(stream)[failure.culprit];
	failure.epoch = stream->first->epoch;
	snprintf(stream->reason, sizeof(stream->reason), "%s",
		 mmc_last_error());
	mmc_node_fail(stream, &failure);
}

/* Returns the cursor of this leader's rail. */
static struct mmc_cursor *own_arrived(const struct mmc_node_stream *stream)
{
	return &stream->head->rails[stream->rail].arrived;
}

bool mmc_node_take_arrived(struct mmc_node_stream *stream)
{
	uint32_t narrived = stream->narrived;

	while (mmc_node_is_forwarding(stream) && !stream->waits_between) {
		struct mmc_request **forwarded =
			&stream->forwarded[stream->narrived %
					   stream->options.nslots];

		if (*forwarded != NULL) {
			int rv = mmc_request_wait(*forwarded, 0);

			if (rv == MMC_EAGAIN)
				break;
			if (rv < 0) {
				fail(stream, *forwarded);
				return false;
			}
			mmc_request_free(*forwarded);
			*forwarded = NULL;
		}
		stream->narrived++;
	}
	if (stream->narrived == narrived)
		return false;
	mmc_cursor_set(own_arrived(stream), stream->narrived);
	mmc_node_ring_attended(stream);
	return true;
}

void mmc_node_await_arrival(struct mmc_node_stream *stream, uint64_t limit_ns)
{
	struct mmc_request **forwarded =
		&stream->forwarded[stream->narrived % stream->options.nslots];
	uint32_t narrived = stream->narrived;

	if (*forwarded == NULL)
		return;
	if (stream->waits_between) {
		pthread_mutex_unlock(&stream->mutex);
		mmc_cursor_sleep(own_arrived(stream), narrived, limit_ns);
		pthread_mutex_lock(&stream->mutex);
		return;
	}
	stream->waits_between = true;
	pthread_mutex_unlock(&stream->mutex);
	mmc_request_wait(*forwarded, limit_ns);
	pthread_mutex_lock(&stream->mutex);
	stream->waits_between = false;
	/* Where the stream has failed meanwhile, nobody else gives the piece up. */
	if (stream->failure.error != 0) {
		mmc_request_cancel(*forwarded);
		mmc_request_free(*forwarded);
		*forwarded = NULL;
	}
}
