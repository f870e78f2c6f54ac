/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/progress.h"

#include <string.h>

#include "node/failing.h"
#include "node/fill.h"
#include "node/forward.h"
#include "node/read.h"

/* Returns the request that has a piece, which is `after` or comes behind it. */
static struct mmc_node_request *request_of(struct mmc_node_request *after,
					   uint32_t piece)
{
	while (after != NULL && !mmc_node_request_has(after, piece))
		after = after->next;
	return after;
}

static bool fill(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request = stream->first;
	bool moved = false;

	while ((request = request_of(request, stream->nfilled)) != NULL &&
	       mmc_node_fill(request))
		moved = true;
	return moved;
}

static bool forward(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request = stream->first;
	bool moved = mmc_node_take_arrived(stream);

	while ((request = request_of(request, stream->nforwarded)) != NULL &&
	       mmc_node_forward(request))
		moved = true;
	return moved;
}

static bool read_pieces(struct mmc_node_stream *stream)
{
	bool moved = false;

	while (stream->first != NULL && mmc_node_read(stream->first)) {
		moved = true;
		if (!mmc_node_request_has(stream->first, stream->nread))
			mmc_node_request_take_first(stream);
	}
	return moved;
}

void mmc_node_progress(struct mmc_node_stream *stream)
{
	bool moved = stream->first != NULL;

	while (moved && stream->first != NULL) {
		moved = fill(stream);
		if (mmc_node_leads(stream))
			moved |= forward(stream);
		moved |= read_pieces(stream);
	}
	mmc_node_adopt_failure(stream);
}
