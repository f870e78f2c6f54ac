/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/spares.h"

#include <stdlib.h>

#include "engine/advert.h"
#include "engine/landed.h"
#include "engine/parity.h"
#include "engine/placement.h"
#include "engine/threads/notify.h"
#include "support/present.h"

/* Frees a request in any state; one in flight is given up. NULL is allowed. */
static void free_request(struct mmc_request *request)
{
	struct mmc_team *team;

	if (request == NULL)
		return;
	team = request->stream->team;
	mmc_request_end_placement(request, true);
	mmc_request_revoke(request);
	mmc_request_forget_fetches(request);
	mmc_request_forget_tasks(request);
	if (request->notifies)
		mmc_engine_notify(team->engine);
	if (request->registered)
		mmc_team_deregister(team, &request->region);
	if (mmc_request_tells_of_blocks(request))
		mmc_request_end_telling(request);
	if (mmc_request_shows_bits(request))
		mmc_present_free(request->present);
	else
		free(request->memory);
	mmc_copies_give(&request->stream->copies, request->copy);
	free(request);
}

static struct mmc_request *new_request(struct mmc_stream *stream,
				       size_t memory_bytes)
{
	struct mmc_request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return NULL;
	request->stream = stream;
	request->memory = aligned_alloc(64, (memory_bytes + 63) / 64 * 64);
	request->memory_bytes = memory_bytes;
	mmc_count(&stream->counters, MMC_COUNT_ALLOCATIONS, 1);
	if (request->memory != NULL &&
	    stream->options.repair == MMC_REPAIR_READ &&
	    mmc_team_can_grant(stream->team))
		request->registered =
			mmc_team_register(stream->team, request->memory,
					  memory_bytes, &stream->counters,
					  &request->region) == 0;
	if (request->memory != NULL)
		return request;
	free_request(request);
	return NULL;
}

/* Takes a spare that is large enough out of the list. Returns NULL if there is none. */
static struct mmc_request *take_spare(struct mmc_stream *stream,
				      size_t memory_bytes)
{
	for (struct mmc_request **at = &stream->spares; *at != NULL;
	     at = &(*at)->next) {
		struct mmc_request *spare = *at;

		if (spare->memory_bytes < memory_bytes)
			continue;
		*at = spare->next;
		return spare;
	}
	return NULL;
}

static void add_spare(struct mmc_stream *stream, struct mmc_request *request)
{
	request->next = stream->spares;
	stream->spares = request;
}

/* Frees all spares, none of which was large enough, so that they do not pile up. */
static void free_spares(struct mmc_stream *stream)
{
	while (stream->spares != NULL) {
		struct mmc_request *spare = stream->spares;

		stream->spares = spare->next;
		free_request(spare);
	}
}

struct mmc_request *mmc_request_get(struct mmc_stream *stream,
				    size_t memory_bytes)
{
	struct mmc_request *request = take_spare(stream, memory_bytes);
	struct mmc_request *spare;

	if (request != NULL)
		return request;
	free_spares(stream);
	request = new_request(stream, memory_bytes);
	spare = new_request(stream, memory_bytes);
	if (spare != NULL)
		add_spare(stream, spare);
	return request;
}

void mmc_request_recycle(struct mmc_request *request)
{
	if (request->held || request->op != NULL ||
	    !mmc_request_is_complete(request))
		return;
	/* Someone may look at bits in its memory for ever. */
	if (mmc_request_shows_bits(request))
		free_request(request);
	else
		add_spare(request->stream, request);
}

void mmc_stream_drop_requests(struct mmc_stream *stream)
{
	free_spares(stream);
	while (stream->queue != NULL) {
		struct mmc_request *queued = stream->queue;

		stream->queue = queued->next;
		free_request(queued);
	}
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		free_request(stream->requests[i]);
	mmc_copies_clear(&stream->copies);
}
