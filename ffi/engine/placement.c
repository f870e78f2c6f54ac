/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/placement.h"

#include "engine/arrival.h"
#include "engine/memory.h"
#include "engine/predictor.h"

/*
 * Returns whether the device can tell where chunks belong that may arrive soon. What is
 * predicted needs equal blocks, and the schedule, which is known once all ranks have
 * entered. A device that predicts nothing is told before this rank lets others send.
 */
static bool can_be_located(const struct mmc_request *request)
{
	enum mmc_op_state state = request->op->state;

	if (request->stream->team->endpoint->places_by_itself)
		return state == MMC_OP_ENTRY || state == MMC_OP_FLOW;
	return state == MMC_OP_FLOW && mmc_request_is_predictable(request);
}

/*
 * Returns whether direct placement suits an operation that the device has not refused.
 * Eager operations, and operations by unicast, are not worth the effort.
 */
static bool may_place_directly(const struct mmc_request *request)
{
	const struct mmc_op *op = request->op;

	return !request->unplaceable && op != NULL && can_be_located(request) &&
	       op->mode == MMC_OP_STAGED && op->npresent < op->layout.nchunks;
}

/* Returns at how many bytes from `base` the last place of an operation ends. */
static uint64_t extent_bytes(const struct mmc_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t nranks = request->op->layout.nranks;
	uint64_t nbytes = 0;

	if (operation->offsets_bytes == NULL)
		return request->op->layout.total_bytes;
	for (uint32_t r = 0; r < nranks; r++)
		if (operation->blocks_bytes[r] > 0)
			nbytes = mmc_max_u64(
				nbytes, operation->offsets_bytes[r] +
						operation->blocks_bytes[r]);
	return nbytes;
}

static void begin_placement(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_endpoint *endpoint = team->endpoint;
	uint64_t nbytes = extent_bytes(request);
	struct mmc_predictor predictor = mmc_request_predictor(request);

	predictor.memory = request->base;
	predictor.nbytes = nbytes;
	predictor.cookie = mmc_arrival_cookie(request);
	if (mmc_team_find_region(team, request->base, nbytes, &stream->counters,
				 &predictor.region) &&
	    endpoint->driver->begin_placement(endpoint, &predictor) == 0)
		team->direct_request = request;
	else
		request->unplaceable = true;
}

/* Begins direct placement for the first suitable operation of a stream, if any. */
static void begin_first(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;

	for (uint32_t i = 0;
	     i < MMC_EPOCHS_OPEN_MAX && team->direct_request == NULL; i++)
		if (stream->requests[i] != NULL &&
		    may_place_directly(stream->requests[i]))
			begin_placement(stream->requests[i]);
}

void mmc_team_begin_placement(struct mmc_team *team)
{
	struct mmc_request *direct = team->direct_request;

	if (team->endpoint->driver->begin_placement == NULL)
		return;
	if (direct != NULL &&
	    direct->op->npresent == direct->op->layout.nchunks)
		mmc_request_end_placement(direct, false);
	for (uint32_t i = 0; i < team->nstreams && team->direct_request == NULL;
	     i++)
		if (team->streams[i] != NULL)
			begin_first(team->streams[i]);
}

void mmc_request_end_placement(struct mmc_request *request, bool forget)
{
	struct mmc_team *team = request->stream->team;

	if (team->direct_request != request)
		return;
	team->direct_request = NULL;
	if (team->endpoint->driver->end_placement(team->endpoint, forget) < 0)
		team->memory_may_be_written = true;
}
