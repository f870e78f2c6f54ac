/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/agree.h"

#include "node/failing.h"

/* Fails the stream: `member` filled a piece for another operation than this rank's. */
static void disagree(struct mmc_node_request *request, uint32_t member,
		     uint32_t piece)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_node_words theirs =
		stream->lines[member].words[piece % stream->options.nslots];
	struct mmc_failure failure = mmc_node_failure(
		request, -MMC_EMISMATCH, mmc_node_members(stream)[member]);
	const struct mmc_operation *ours = &request->operation;

	/* Another process wrote these words: they must not be believed. */
	if (theirs.kind < MMC_ALLGATHER || theirs.kind > MMC_NODE_BARRIER)
		theirs.kind = ours->kind;
	failure.kind_min = mmc_min_u32(ours->kind, theirs.kind);
	failure.kind_max = mmc_max_u32(ours->kind, theirs.kind);
	failure.root_min = mmc_min_u32(ours->root, theirs.root);
	failure.root_max = mmc_max_u32(ours->root, theirs.root);
	failure.block_bytes_min =
		mmc_min_u64(ours->block_bytes, theirs.block_bytes);
	failure.block_bytes_max =
		mmc_max_u64(ours->block_bytes, theirs.block_bytes);
	mmc_node_fail(stream, &failure);
}

bool mmc_node_has_filled(struct mmc_node_request *request, uint32_t member,
			 uint32_t piece)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_node_line *line = &stream->lines[member];
	uint32_t nfilled = mmc_cursor_get(&line->filled);

	if (!mmc_cursor_before(piece, nfilled))
		return false;
	if (line->digests[piece % stream->options.nslots] == request->digest)
		return true;
	disagree(request, member, piece);
	return false;
}
