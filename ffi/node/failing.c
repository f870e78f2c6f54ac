/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/failing.h"

#include <mpimcast/mmc.h>

#include "support/error.h"

/*
 * Gives up what this node has begun to exchange with others, and leaves them. If a
 * process no longer answers, they fail because of that: then no rank may wait for all.
 */
static void leave_others(struct mmc_node_stream *stream)
{
	int error = stream->failure.error;

	if (!mmc_node_leads(stream))
		return;
	if (error == -MMC_EGONE || error == -MMC_ELATE)
		mmc_stream_fail(stream->options.between, error);
	for (uint32_t i = 0; i < stream->options.nslots; i++) {
		bool is_awaited =
			stream->waits_between &&
			i == stream->narrived % stream->options.nslots;

		/* The thread that waits for a piece gives it up itself. */
		if (is_awaited || stream->forwarded[i] == NULL)
			continue;
		mmc_request_cancel(stream->forwarded[i]);
		mmc_request_free(stream->forwarded[i]);
		stream->forwarded[i] = NULL;
	}
	mmc_stream_leave(stream->options.between);
}

/* Ends all operations in flight, since the stream has failed. */
static void end_all(struct mmc_node_stream *stream)
{
	leave_others(stream);
	while (stream->first != NULL)
		mmc_node_request_take_first(stream);
}

void mmc_node_adopt_failure(struct mmc_node_stream *stream)
{
	if (stream->failure.error != 0 ||
	    atomic_load_explicit(&stream->head->failing,
				 memory_order_acquire) != MMC_NODE_FAILED)
		return;
	stream->failure = stream->head->failure;
	end_all(stream);
}

void mmc_node_fail(struct mmc_node_stream *stream,
		   const struct mmc_failure *failure)
{
	struct mmc_node_stream_head *head = stream->head;
	uint32_t well = MMC_NODE_WELL;

	if (atomic_compare_exchange_strong(&head->failing, &well,
					   MMC_NODE_FAILING)) {
		head->failure = *failure;
		atomic_store(&head->failing, MMC_NODE_FAILED);
		mmc_node_ring_attended(stream);
	}
	mmc_node_adopt_failure(stream);
}

void mmc_node_give_up(struct mmc_node_stream *stream,
		      const struct mmc_failure *failure)
{
	mmc_node_fail(stream, failure);
	if (stream->failure.error != 0)
		return;
	stream->failure = *failure;
	end_all(stream);
}

void mmc_node_set_last_error(const struct mmc_node_stream *stream)
{
	mmc_error_set("%s", stream->reason);
}

struct mmc_failure mmc_node_failure(const struct mmc_node_request *request,
				    int error, uint32_t culprit)
{
	return (struct mmc_failure){
		.error = error,
		.epoch = request->epoch,
		.culprit = culprit,
		.missing_chunks = mmc_node_request_missing(request),
	};
}
