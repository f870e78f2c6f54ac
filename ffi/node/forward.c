/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/forward.h"

#include <mpimcast/mmc.h>
#include <string.h>

#include "node/agree.h"
#include "node/failing.h"
#include "node/places.h"

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

/* Sets the stream's `nodes_bytes` to the length of each node's blocks. */
static void add_up_blocks(const struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	const struct mmc_node_map *map = &stream->map;

	memset(stream->nodes_bytes, 0,
	       map->nnodes * sizeof(*stream->nodes_bytes));
	for (uint32_t rank = 0; rank < map->nranks; rank++)
		stream->nodes_bytes[map->nodes[rank]] +=
			mmc_node_part(request, 0, rank).nbytes;
}

/*
 * Describes the exchange of a piece, whose parts lie node by node in the slot, or in the
 * result itself.
 */
static struct mmc_operation exchange(const struct mmc_node_request *request,
				     uint8_t *slot)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t index = mmc_node_request_index(request, stream->nforwarded);
	uint32_t root = request->operation.root;

	if (request->delivery == MMC_NODE_IN_PLACE) {
		slot = request->operation.recv;
		add_up_blocks(request);
	} else {
		mmc_node_lay_out(request, index);
	}
	if (request->operation.kind == MMC_BCAST)
		return (struct mmc_operation){
			.kind = MMC_BCAST,
			.root = stream->map.nodes[root],
			.block_bytes =
				mmc_node_part(request, index, root).nbytes,
			.recv = slot,
		};
	return (struct mmc_operation){
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = stream->nodes_bytes,
		.recv = slot,
	};
}

bool mmc_node_forward(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t slot = stream->nforwarded % stream->options.nslots;
	struct mmc_operation operation;
	struct mmc_failure failure;
	int rv;

	if (!is_filled(request))
		return false;
	/* A NULL among the forwarded pieces is one that has arrived. */
	if (mmc_node_request_enters(request, stream->nforwarded)) {
		stream->nforwarded++;
		return true;
	}
	operation =
		exchange(request, mmc_node_slot(stream, stream->nforwarded));
	operation.notifies = request->operation.notifies;
	rv = mmc_start(stream->options.between, &operation, 0,
		       &stream->forwarded[slot]);
	if (rv < 0 && stream->forwarded[slot] == NULL) {
		failure = mmc_node_failure(request, rv, stream->options.rank);
		mmc_node_fail(stream, &failure);
		return false;
	}
	/* One that is complete, or has failed, already is taken as any other. */
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
		failure.culprit = stream->map.leaders[failure.culprit];
	failure.epoch = stream->first->epoch;
	mmc_node_fail(stream, &failure);
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
	mmc_cursor_set(&stream->head->arrived, stream->narrived);
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
		mmc_cursor_sleep(&stream->head->arrived, narrived, limit_ns);
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
