/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/covering.h"

#include "drivers/cover.h"
#include "engine/memory.h"

uint32_t mmc_request_subgroup(const struct mmc_request *request, uint32_t chunk)
{
	const struct mmc_op *op = request->op;
	const struct mmc_block block = mmc_layout_block(
		&op->layout, mmc_layout_owner(&op->layout, chunk));
	uint32_t chain = mmc_op_has_begun(op)
				 ? mmc_schedule_chain(&op->schedule, &block)
				 : block.number;

	return chain % request->stream->team->options.subgroups;
}

/* Eager operations and operations by unicast are not worth covering. */
static bool is_coverable(const struct mmc_request *request)
{
	const struct mmc_op *op = request->op;

	return !request->uncoverable && op != NULL &&
	       op->state == MMC_OP_FLOW && op->mode == MMC_OP_STAGED &&
	       mmc_covers_suits(&op->layout) &&
	       op->npresent < op->layout.nchunks;
}

static void cover(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_endpoint *endpoint = team->endpoint;
	const struct mmc_op *op = request->op;
	uint64_t nbytes = op->layout.total_bytes;
	struct mmc_cover plan = {
		.base = request->base,
		.layout = &op->layout,
		.schedule = &op->schedule,
		.chains = op->repair.loss.chains,
		.claimed = &op->claimed,
		.channel = op->config.channel,
		.epoch = op->config.epoch,
		.rank = op->config.rank,
	};

	if (mmc_team_find_region(team, request->base, nbytes, &stream->counters,
				 &plan.region) &&
	    endpoint->driver->cover(endpoint, &plan) == 0)
		team->coverer = request;
	else
		request->uncoverable = true;
}

static void cover_first(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX && team->coverer == NULL;
	     i++)
		if (stream->requests[i] != NULL &&
		    is_coverable(stream->requests[i]))
			cover(stream->requests[i]);
}

void mmc_team_cover(struct mmc_team *team)
{
	struct mmc_request *coverer = team->coverer;

	if (team->endpoint->driver->cover == NULL)
		return;
	if (coverer != NULL &&
	    coverer->op->npresent == coverer->op->layout.nchunks)
		mmc_request_uncover(coverer, false);
	for (uint32_t i = 0; i < team->nstreams && team->coverer == NULL; i++)
		if (team->streams[i] != NULL)
			cover_first(team->streams[i]);
}

void mmc_request_uncover(struct mmc_request *request, bool forget)
{
	struct mmc_team *team = request->stream->team;

	if (team->coverer != request)
		return;
	team->coverer = NULL;
	if (team->endpoint->driver->uncover(team->endpoint, forget) < 0)
		team->failed = true;
}
