/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/advert.h"

#include "engine/memory.h"

uint64_t mmc_request_generation(struct mmc_request *request)
{
	struct mmc_team *team = request->stream->team;

	/* A reader computes addresses from adjacent blocks, so gaps forbid reading. */
	if (!request->registered || request->operation.offsets_bytes != NULL)
		return 0;
	team->generation++;
	team->generation += team->generation == 0;
	return team->generation;
}

/* Lets the right neighbour read the result. Returns 0 or a negative error. */
static int grant_data(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	uint64_t nbytes = mmc_op_layout(request->op)->total_bytes;
	struct mmc_region region;
	int rv;

	if (mmc_team_find_region(team, request->base, nbytes, &stream->counters,
				 &region))
		return mmc_team_grant(team, &region, request->base, nbytes,
				      &request->data);
	rv = mmc_team_grant(team, NULL, request->base, nbytes, &request->data);
	if (rv == 0)
		mmc_count(&stream->counters, MMC_COUNT_REGISTRATIONS, 1);
	return rv;
}

void mmc_request_register(struct mmc_request *request)
{
	struct mmc_team *team = request->stream->team;
	struct mmc_grant *state = &request->state;
	struct mmc_grant *data = &request->data;

	if (mmc_team_grant(team, &request->region, request->memory,
			   request->memory_bytes, state) != 0) {
		mmc_op_registered(request->op, NULL);
		return;
	}
	if (grant_data(request) != 0) {
		mmc_team_revoke(team, state);
		mmc_op_registered(request->op, NULL);
		return;
	}
	request->granted = true;
	mmc_op_registered(request->op, &(struct mmc_readable){
					       .state_address = state->address,
					       .data_address = data->address,
					       .state_key = state->key,
					       .data_key = data->key,
				       });
}

void mmc_request_revoke(struct mmc_request *request)
{
	struct mmc_team *team = request->stream->team;

	if (!request->granted)
		return;
	mmc_team_revoke(team, &request->data);
	mmc_team_revoke(team, &request->state);
	request->granted = false;
}
