/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/cross.h"

#include "node/agree.h"
#include "node/attach.h"

/* Returns where this rank's block lies. */
static const void *own_block(const struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;

	return operation->send != NULL
		       ? operation->send
		       : mmc_node_request_result(request,
						 request->stream->options.rank);
}

uint64_t mmc_node_cross_word(const struct mmc_node_request *request,
			     uint32_t piece)
{
	if (mmc_node_is_verdict(request, piece))
		return !request->lacks;
	return (uintptr_t)own_block(request);
}

/* Copies the block of a member to its place in the result. */
static void take_block(struct mmc_node_request *request, uint32_t member)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_node_line *line = &stream->lines[member];
	uint32_t slot = request->first_piece % stream->options.nslots;
	uint32_t rank = mmc_node_members(stream)[member];
	uint64_t nbytes = mmc_node_request_bytes(request, rank);
	uint8_t *result = mmc_node_request_result(request, rank);
	const void *own = own_block(request);

	/* Once one block has failed, all go through the slots. */
	if (nbytes == 0 || request->lacks)
		return;
	if (member == stream->member) {
		if (own != result)
			mmc_node_request_copy(request, result, own, nbytes);
		return;
	}
	if (mmc_node_attach_read(stream->node, member, result,
				 line->adverts[slot], nbytes) != 0)
		request->lacks = true;
	else
		stream->counts.cross_bytes += nbytes;
}

/* Reads the blocks that have been told of since; returns whether it has all. */
static bool take_blocks(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	const uint32_t *members = mmc_node_members(stream);
	uint32_t nmembers = stream->node->nmembers;
	uint64_t *taken = mmc_node_request_taken(request);
	uint32_t nwanted = request->operation.kind == MMC_BCAST ? 1 : nmembers;

	/* Each begins with its right neighbour, so that not all read one's block. */
	for (uint32_t i = 0; i < nmembers; i++) {
		uint32_t member = (stream->member + 1 + i) % nmembers;
		uint64_t bit = UINT64_C(1) << (member & 63);

		if ((taken[member >> 6] & bit) ||
		    !mmc_node_request_sends(request, members[member]) ||
		    !mmc_node_has_filled(request, member, stream->nread))
			continue;
		take_block(request, member);
		taken[member >> 6] |= bit;
		request->ntaken++;
	}
	return request->ntaken == nwanted;
}

/* Learns what all members have said; returns whether they have. */
static bool judge(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	uint32_t slot = stream->nread % stream->options.nslots;
	bool lacks = false;

	for (uint32_t i = 0; i < stream->node->nmembers; i++) {
		if (!mmc_node_has_filled(request, i, stream->nread))
			return false;
		lacks |= stream->lines[i].adverts[slot] == 0;
	}
	/* A sender that has given up may have changed its block while it was read. */
	if (atomic_load(&stream->head->failing) != MMC_NODE_WELL)
		return false;
	request->lacks = lacks;
	return true;
}

bool mmc_node_cross_take(struct mmc_node_request *request)
{
	return mmc_node_is_verdict(request, request->stream->nread)
		       ? judge(request)
		       : take_blocks(request);
}

void mmc_node_cross_skip(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	stream->nfilled = request->first_piece + request->npieces;
	stream->nread = stream->nfilled;
	mmc_cursor_set(&stream->lines[stream->member].filled, stream->nfilled);
}
