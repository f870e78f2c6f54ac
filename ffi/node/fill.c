/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/fill.h"

#include <string.h>

#include "node/cross.h"
#include "node/landing.h"
#include "node/places.h"

uint32_t mmc_node_least_read(const struct mmc_node_stream *stream,
			     uint32_t *slowest)
{
	uint32_t least = stream->nread;

	*slowest = stream->member;

	for (uint32_t i = 0; i < stream->node->nmembers; i++) {
		uint32_t nread = mmc_cursor_get(&stream->lines[i].read);

		if (mmc_cursor_before(nread, least)) {
			least = nread;
			*slowest = i;
		}
	}
	return least;
}

/* Returns whether the next piece's slot is free. */
static bool is_free(struct mmc_node_stream *stream)
{
	uint32_t slowest;

	if (mmc_cursor_before(stream->nfilled, stream->nfree))
		return true;
	stream->nfree =
		mmc_node_least_read(stream, &slowest) + stream->options.nslots;
	return mmc_cursor_before(stream->nfilled, stream->nfree);
}

/* Copies this rank's part of the request's piece number `index` to where it belongs. */
static void copy_part(struct mmc_node_request *request, uint32_t index,
		      uint8_t *slot)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t rank = stream->options.rank;
	struct mmc_part part = mmc_node_part(request, index, rank);
	uint8_t *result =
		mmc_node_request_result(request, rank) + part.offset_bytes;
	const uint8_t *from = result;

	if (part.nbytes == 0)
		return;
	if (request->operation.send != NULL)
		from = (const uint8_t *)request->operation.send +
		       part.offset_bytes;
	if (from != result)
		mmc_node_request_copy(request, result, from, part.nbytes);
	if (request->delivery == MMC_NODE_IN_PLACE)
		return;
	mmc_node_lay_out(request, index);
	memcpy(slot + stream->places[rank], from, part.nbytes);
	stream->counts.tx_bytes += part.nbytes;
}

bool mmc_node_fill(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_node_line *line = &stream->lines[stream->member];
	uint32_t piece = stream->nfilled;
	uint32_t slot = piece % stream->options.nslots;
	bool enters = mmc_node_request_enters(request, piece);
	/* What goes before a piece: all entries or, of a verdict, its advert. */
	uint32_t nbefore = enters ? mmc_node_is_verdict(request, piece)
				  : request->nentries;
	bool is_entered = nbefore == 0 ||
			  !mmc_cursor_before(stream->nread,
					     request->first_piece + nbefore);

	if (request->operation.unready || !is_free(stream) || !is_entered)
		return false;
	line->digests[slot] = request->digest;
	line->words[slot] = (struct mmc_node_words){
		.kind = request->operation.kind,
		.root = request->operation.root,
		.block_bytes = request->operation.block_bytes,
	};
	if (enters && request->delivery == MMC_NODE_CROSS)
		line->adverts[slot] = mmc_node_cross_word(request, piece);
	if (!enters && mmc_node_request_sends(request, stream->options.rank)) {
		uint32_t index = mmc_node_request_index(request, piece);

		copy_part(request, index, mmc_node_slot(stream, piece));
		mmc_node_landing_note_member(request, index,
					     stream->options.rank);
	}
	mmc_cursor_set(&line->filled, ++stream->nfilled);
	mmc_node_ring_attended(stream);
	return true;
}
