/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/placement.h"

#include "drivers/placement.h"
#include "engine/memory.h"

uint32_t mmc_request_subgroup(const struct mmc_request *request, uint32_t chunk)
{
	const struct mmc_op *op = request->op;
	const struct mmc_block block = mmc_layout_block(
		&op->layout, mmc_layout_owner(&op->layout, chunk));
	uint32_t chain = op->begun ? mmc_schedule_chain(&op->schedule, &block)
				   : block.number;

	return chain % request->stream->team->options.subgroups;
}

/* Eager operations and operations by unicast are not worth covering. */
static bool may_place_directly(const struct mmc_request *request)
{
	const struct mmc_op *op = request->op;

	return !request->staged && op != NULL && op->begun &&
	       op->state == MMC_OP_FLOW && !op->eager && !op->unicast &&
	       mmc_placement_suits(&op->layout) &&
	       op->npresent < op->layout.nchunks;
}

static void begin_placement(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_endpoint *endpoint = team->endpoint;
	const struct mmc_op *op = request->op;
	uint64_t nbytes = op->layout.total_bytes;
	struct mmc_predictor plan = {
		.base = request->base,
		.layout = &op->layout,
		.schedule = &op->schedule,
		.chains = op->loss.chains,
		.claimed = &op->claimed,
		.channel = op->config.channel,
		.epoch = op->config.epoch,
		.rank = op->config.rank,
	};

	if (mmc_team_find_region(team, request->base, nbytes, &stream->counters,
				 &plan.region) &&
	    endpoint->driver->begin_placement(endpoint, &plan) == 0)
		team->direct = request;
	else
		request->staged = true;
}

static void begin_first(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX && team->direct == NULL;
	     i++)
		if (stream->requests[i] != NULL &&
		    may_place_directly(stream->requests[i]))
			begin_placement(stream->requests[i]);
}

void mmc_team_begin_placement(struct mmc_team *team)
{
	struct mmc_request *direct = team->direct;

	if (team->endpoint->driver->begin_placement == NULL)
		return;
	if (direct != NULL &&
	    direct->op->npresent == direct->op->layout.nchunks)
		mmc_request_end_placement(direct, false);
	for (uint32_t i = 0; i < team->nstreams && team->direct == NULL; i++)
		if (team->streams[i] != NULL)
			begin_first(team->streams[i]);
}

void mmc_request_end_placement(struct mmc_request *request, bool forget)
{
	struct mmc_team *team = request->stream->team;

	if (team->direct != request)
		return;
	team->direct = NULL;
	if (team->endpoint->driver->end_placement(team->endpoint, forget) < 0)
		team->failed = true;
}
