/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/read.h"

#include <string.h>

#include "node/agree.h"
#include "node/cross.h"
#include "node/landing.h"
#include "node/places.h"

/* Returns whether this member has to copy the part of `rank` into the result. */
static bool must_copy(const struct mmc_node_request *request, uint32_t rank)
{
	const struct mmc_node_stream *stream = request->stream;
	const uint32_t *nodes = stream->map.nodes;

	if (!mmc_node_request_sends(request, rank))
		return false;
	switch (request->delivery) {
	case MMC_NODE_COPIES:
	case MMC_NODE_CROSS:
		return rank != stream->options.rank;
	case MMC_NODE_ONE_COPY:
		/* Each member has put its own part there itself. */
		return nodes[rank] != nodes[stream->options.rank];
	default:
		return false;
	}
}

/* Copies the part of `rank` of the request's piece number `index` into the result. */
static void copy_part(struct mmc_node_request *request, uint32_t index,
		      uint32_t rank)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_part part = mmc_node_part(request, index, rank);
	const uint8_t *slot = mmc_node_slot(stream, stream->nread);

	if (part.nbytes == 0 || !must_copy(request, rank))
		return;
	mmc_node_request_copy(request,
			      mmc_node_request_result(request, rank) +
				      part.offset_bytes,
			      slot + stream->places[rank], part.nbytes);
	stream->counts.rx_bytes += part.nbytes;
}

/* Takes the parts that members have filled in since; returns whether it has all. */
static bool take_members(struct mmc_node_request *request, bool enters)
{
	struct mmc_node_stream *stream = request->stream;
	const uint32_t *members = mmc_node_members(stream);
	uint32_t nmembers = stream->node->nmembers;
	uint64_t *taken = mmc_node_request_taken(request);
	uint32_t index = mmc_node_request_index(request, stream->nread);
	uint32_t nwanted = request->operation.kind == MMC_BCAST ? 1 : nmembers;
	bool laid_out = enters;

	/* Each begins with its right neighbour, so that not all read one's part. */
	for (uint32_t i = 0; i < nmembers; i++) {
		uint32_t member = (stream->member + 1 + i) % nmembers;
		uint64_t bit = UINT64_C(1) << (member & 63);

		/* Where members disagree, the result is the program's again. */
		if (stream->failure.error != 0)
			return false;
		if ((taken[member >> 6] & bit) ||
		    !mmc_node_request_sends(request, members[member]) ||
		    !mmc_node_has_filled(request, member, stream->nread))
			continue;
		if (!laid_out)
			mmc_node_lay_out(request, index);
		laid_out = true;
		if (!enters) {
			copy_part(request, index, members[member]);
			mmc_node_landing_note_member(request, index,
						     members[member]);
		}
		taken[member >> 6] |= bit;
		request->ntaken++;
	}
	return request->ntaken == nwanted;
}

/*
 * Copies the parts of a piece that is whole in its slot, or waits for the leader of its
 * rail to have copied them for all.
 */
static bool take_all(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t index = mmc_node_request_index(request, stream->nread);
	bool is_mine = request->delivery == MMC_NODE_COPIES ||
		       mmc_node_request_carries(request, stream->nread);

	if (!mmc_cursor_before(stream->nread,
			       mmc_cursor_get(mmc_node_source(request))))
		return false;
	if (!is_mine || request->delivery == MMC_NODE_IN_PLACE)
		return true;
	mmc_node_lay_out(request, index);
	for (uint32_t rank = 0; rank < stream->map.nranks; rank++)
		copy_part(request, index, rank);
	return true;
}

/* Returns whether this rank has all that it wants of the piece. */
static bool take(struct mmc_node_request *request)
{
	const struct mmc_node_stream *stream = request->stream;
	bool is_root = request->operation.kind == MMC_BCAST &&
		       request->operation.root == stream->options.rank;
	bool enters = mmc_node_request_enters(request, stream->nread);

	if (enters && request->delivery == MMC_NODE_CROSS)
		return mmc_node_cross_take(request);
	/* Nobody would pass over a piece whose operation is over. */
	if (mmc_node_leads(stream) &&
	    !mmc_cursor_before(stream->nread, stream->nforwarded))
		return false;
	if (is_root && !mmc_node_request_carries(request, stream->nread))
		return true;
	return stream->map.nnodes > 1 && !enters
		       ? take_all(request)
		       : take_members(request, enters);
}

struct mmc_cursor *mmc_node_source(const struct mmc_node_request *request)
{
	const struct mmc_node_stream *stream = request->stream;
	uint32_t rail = mmc_node_request_rail(request, stream->nread);

	if (request->delivery == MMC_NODE_ONE_COPY &&
	    !mmc_node_request_carries(request, stream->nread))
		return &stream->lines[stream->leaders[rail]].read;
	return &stream->head->rails[rail].arrived;
}

/* Records what the stream's next unread piece, which has been read, has brought. */
static void note_read(struct mmc_node_request *request)
{
	const struct mmc_node_stream *stream = request->stream;

	/* Parts of a single node's members have been noted one by one. */
	if (stream->map.nnodes > 1 &&
	    !mmc_node_request_enters(request, stream->nread))
		mmc_node_landing_note_piece(
			request,
			mmc_node_request_index(request, stream->nread));
}

bool mmc_node_read(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t nmembers = stream->node->nmembers;

	if (!mmc_cursor_before(stream->nread, stream->nfilled) ||
	    !take(request))
		return false;
	request->ntaken = 0;
	memset(mmc_node_request_taken(request), 0,
	       (nmembers / 64 + 1) * sizeof(uint64_t));
	stream->counts.pieces++;
	if (mmc_node_is_verdict(request, stream->nread) && !request->lacks) {
		mmc_node_landing_note_all(request);
		mmc_node_cross_skip(request);
	} else {
		note_read(request);
		stream->nread++;
	}
	mmc_cursor_set(&stream->lines[stream->member].read, stream->nread);
	mmc_node_ring_attended(stream);
	return true;
}
