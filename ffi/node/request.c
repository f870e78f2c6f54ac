/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/request.h"

#include <stdlib.h>
#include <string.h>

#include "node/landing.h"
#include "node/places.h"
#include "node/tracing.h"
#include "support/bits.h"
#include "support/error.h"

/*
 * The largest result of cross reads. While a member reads, nothing that others see moves,
 * and they might take it for dead.
 */
#define CROSS_BYTES_MAX (UINT64_C(1) << 30)

/* Longer pieces of a Bcast on one node overlap less, and shorter ones are too many. */
#define BCAST_PIECE_BYTES (UINT64_C(64) << 10)

/* Mixes `value` into a digest (FNV-1a, by words). */
static uint32_t mixed(uint32_t digest, uint64_t value)
{
	digest = (digest ^ (uint32_t)value) * UINT32_C(16777619);
	return (digest ^ (uint32_t)(value >> 32)) * UINT32_C(16777619);
}

/* Copies the sizes and offsets of an Allgatherv's blocks to the request's tables. */
static void copy_tables(struct mmc_node_request *request)
{
	uint32_t nranks = request->stream->options.nranks;
	struct mmc_operation *operation = &request->operation;
	uint64_t *sizes = request->tables;
	uint64_t *offsets = request->tables + nranks;
	uint64_t end_bytes = 0;

	memcpy(sizes, operation->blocks_bytes, nranks * sizeof(*sizes));
	for (uint32_t i = 0; i < nranks; i++) {
		offsets[i] = operation->offsets_bytes != NULL
				     ? operation->offsets_bytes[i]
				     : end_bytes;
		end_bytes += sizes[i];
	}
	operation->blocks_bytes = sizes;
	operation->offsets_bytes = offsets;
}

static struct mmc_node_request *get(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request = stream->spares;
	size_t nwords = 2 * (size_t)stream->options.nranks +
			stream->node->nmembers / 64 + 1;

	if (request != NULL) {
		stream->spares = request->next;
		return request;
	}
	return calloc(1, sizeof(*request) + nwords * sizeof(*request->tables));
}

/* Returns whether each node's blocks are one range of the result. */
static bool is_by_node(const struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	const struct mmc_node_map *map = &request->stream->map;
	uint64_t end_bytes = 0;

	if (operation->kind == MMC_BCAST)
		return true;
	for (uint32_t i = 0; i < map->nranks; i++) {
		if (map->order[i] != i)
			return false;
		if (operation->kind != MMC_ALLGATHERV)
			continue;
		if (operation->blocks_bytes[i] > 0 &&
		    operation->offsets_bytes[i] != end_bytes)
			return false;
		end_bytes += operation->blocks_bytes[i];
	}
	return true;
}

static enum mmc_node_delivery
choose_delivery(const struct mmc_node_request *request)
{
	if (request->operation.shared == 0)
		return MMC_NODE_COPIES;
	if (request->stream->map.nnodes == 1 || is_by_node(request))
		return MMC_NODE_IN_PLACE;
	return MMC_NODE_ONE_COPY;
}

/* Returns the blocks that pieces are cut from: those of ranks or, in place, of nodes. */
static struct mmc_pieces blocks(const struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	const struct mmc_node_stream *stream = request->stream;
	struct mmc_pieces pieces = {
		.block_bytes = operation->block_bytes,
		.nblocks = stream->options.nranks,
		.nrails = stream->options.nrails,
	};

	if (operation->kind == MMC_BCAST) {
		pieces.nblocks = 1;
	} else if (request->delivery == MMC_NODE_IN_PLACE) {
		mmc_node_add_up(request);
		pieces.nblocks = stream->map.nnodes;
		pieces.blocks_bytes = stream->nodes_bytes;
	} else if (operation->kind == MMC_ALLGATHERV) {
		pieces.blocks_bytes = operation->blocks_bytes;
	}
	return pieces;
}

static void count_pieces(struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	bool is_barrier = operation->kind == MMC_NODE_BARRIER;
	bool overwrites = operation->shared != 0 && operation->send != NULL;

	request->nentries = is_barrier || overwrites;
	if (request->delivery == MMC_NODE_CROSS)
		request->nentries = 2;
	request->npieces =
		is_barrier ? 1 : request->nentries + request->pieces.npieces;
}

/* Returns the longest block of an operation whose pieces have been cut. */
static uint64_t longest_bytes(const struct mmc_node_request *request)
{
	const struct mmc_pieces *pieces = &request->pieces;
	uint64_t longest_bytes = 0;

	if (pieces->blocks_bytes == NULL)
		return pieces->block_bytes;
	for (uint32_t i = 0; i < pieces->nblocks; i++)
		longest_bytes =
			mmc_max_u64(longest_bytes, pieces->blocks_bytes[i]);
	return longest_bytes;
}

/*
 * Returns whether members read blocks from the senders, which all of them decide alike.
 * With more than one reader a block takes less time through slots: the kernel looks up
 * the sender's pages for each of them.
 */
static bool crosses(const struct mmc_node_request *request)
{
	const struct mmc_node_stream *stream = request->stream;
	bool gathers = request->operation.kind != MMC_BCAST;
	uint64_t least_bytes = stream->cross_bytes_min;

	if (least_bytes == 0 || stream->map.nranks != 2 ||
	    stream->map.nnodes != 1 || request->delivery != MMC_NODE_COPIES ||
	    request->pieces.total_bytes > CROSS_BYTES_MAX)
		return false;
	return longest_bytes(request) >= (gathers ? 1 : 2) * least_bytes;
}

/*
 * Returns the bytes that a piece may take. A result that arrives in place needs no slots,
 * so any piece fits. In a Bcast on one node the others copy a piece while the root copies
 * the next one, so there should be several.
 */
static uint64_t room_bytes(const struct mmc_node_request *request)
{
	const struct mmc_node_stream *stream = request->stream;
	uint64_t slot_bytes = stream->options.slot_bytes;

	if (request->delivery == MMC_NODE_IN_PLACE)
		return UINT64_MAX;
	if (request->operation.kind == MMC_BCAST && stream->map.nnodes == 1 &&
	    request->delivery == MMC_NODE_COPIES)
		return mmc_min_u64(slot_bytes, BCAST_PIECE_BYTES);
	return slot_bytes;
}

/*
 * Cuts the operation into pieces, and sets its digest. Returns false if it would have
 * too many pieces.
 */
static bool plan(struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	const struct mmc_node_stream *stream = request->stream;
	bool varies = operation->kind == MMC_ALLGATHERV;
	uint32_t digest = mixed(mixed(operation->kind, operation->root),
				operation->shared);
	bool fits;

	request->delivery = choose_delivery(request);
	request->pieces = blocks(request);
	fits = mmc_pieces_cut(&request->pieces, room_bytes(request));
	request->is_large = request->pieces.total_bytes >=
			    MMC_PAST_CACHES_BYTES_MIN;
	if (crosses(request))
		request->delivery = MMC_NODE_CROSS;
	count_pieces(request);
	digest = mixed(digest, request->nentries);
	if (varies)
		for (uint32_t i = 0; i < stream->options.nranks; i++)
			digest = mixed(digest, operation->blocks_bytes[i]);
	else
		digest = mixed(digest, operation->block_bytes);
	request->digest = digest;
	return fits;
}

static bool is_valid(const struct mmc_node_stream *stream,
		     const struct mmc_operation *operation)
{
	switch (operation->kind) {
	case MMC_ALLGATHER:
		return true;
	case MMC_ALLGATHERV:
		return operation->blocks_bytes != NULL;
	case MMC_BCAST:
		return operation->root < stream->options.nranks;
	case MMC_NODE_BARRIER:
		return operation->block_bytes == 0;
	default:
		return false;
	}
}

/* Gives a request its pieces, and puts it behind those in flight. */
static void append(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	stream->epoch = request->epoch;
	stream->next_piece += request->npieces;
	/* Entries do not count here: other nodes may have others. */
	stream->next_rail += request->npieces - request->nentries;
	stream->next_rail %= stream->options.nrails;
	if (stream->first == NULL)
		stream->first = request;
	else
		stream->last->next = request;
	stream->last = request;
}

int mmc_node_request_put(struct mmc_node_stream *stream,
			 const struct mmc_operation *operation,
			 struct mmc_node_request **request)
{
	bool is_barrier = operation->kind == MMC_NODE_BARRIER;
	struct mmc_node_request *made;

	if (stream->left || !is_valid(stream, operation))
		return -MMC_EINVAL;
	made = get(stream);
	if (made == NULL)
		return -MMC_ENOMEM;
	*made = (struct mmc_node_request){
		.stream = stream,
		.operation = *operation,
		.first_piece = stream->next_piece,
		.first_rail = stream->next_rail,
		/* Other nodes do not count this node's barriers. */
		.epoch = stream->epoch + !is_barrier,
	};
	if (operation->kind != MMC_BCAST)
		made->operation.root = 0;
	if (operation->kind == MMC_ALLGATHERV)
		copy_tables(made);
	if (!plan(made)) {
		mmc_node_request_keep(made);
		mmc_error_set("the operation's blocks do not fit in %u pieces",
			      MMC_NODE_PIECES_MAX);
		return -MMC_EINVAL;
	}
	if (operation->partial && !is_barrier &&
	    mmc_node_landing_begin(made) != 0) {
		mmc_node_request_keep(made);
		return -MMC_ENOMEM;
	}
	if (stream->tracing != NULL)
		mmc_node_tracing_put(made);
	stream->counts.operations += !is_barrier;
	append(made);
	if (operation->notifies) {
		mmc_node_watch(stream->node);
		atomic_fetch_add(&stream->head->nattended, 1);
	}
	*request = made;
	return 0;
}

void mmc_node_request_take_first(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request = stream->first;

	stream->first = request->next;
	request->next = NULL;
	request->failure = stream->failure;
	if (stream->failure.error != 0)
		request->failure.missing_chunks =
			mmc_node_request_missing(request);
	/* The failure of another operation must not be told as that of this one. */
	if (stream->failure.error != 0 &&
	    stream->failure.epoch != request->epoch)
		request->failure.error = -MMC_EPOISONED;
	if (stream->tracing != NULL)
		mmc_node_tracing_finish(request);
	if (request->operation.notifies) {
		atomic_fetch_sub(&stream->head->nattended, 1);
		/* While it is still watched, the sleeper looks up by itself. */
		mmc_node_ring(stream->node, stream->member);
		atomic_fetch_sub(&stream->node->nwatched, 1);
	}
	atomic_store_explicit(&request->complete, true, memory_order_release);
}

void mmc_node_request_keep(struct mmc_node_request *request)
{
	mmc_node_landing_end(request);
	request->next = request->stream->spares;
	request->stream->spares = request;
}

void mmc_node_requests_free(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request;

	while ((request = stream->spares) != NULL) {
		stream->spares = request->next;
		free(request);
	}
}
