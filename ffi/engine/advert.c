/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/advert.h"

#include "engine/memory.h"
#include "engine/operation.h"

/* Returns a new generation; skips 0, which stands for none. */
static uint64_t next_generation(struct mmc_team *team)
{
	team->generation++;
	team->generation += team->generation == 0;
	return team->generation;
}

struct mmc_advert mmc_request_advert(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_advert advert = { 0 };
	struct mmc_region data;

	/* A reader computes addresses from adjacent blocks, so gaps forbid reading. */
	if (!request->map_registered ||
	    request->operation.offsets_bytes != NULL)
		return advert;
	advert.generation = next_generation(team);
	advert.map_address = request->map.address;
	advert.map_key = request->map.key;
	advert.has_data = mmc_team_find_region(
		team, request->base,
		mmc_operation_total(&request->operation, team->options.nranks),
		&stream->counters, &data);
	if (advert.has_data) {
		advert.data_address = data.address;
		advert.data_key = data.key;
	}
	return advert;
}

void mmc_request_register(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	uint64_t nbytes = mmc_op_layout(request->op)->total_bytes;
	struct mmc_region *data = &request->data;

	request->registered = mmc_team_register(team, request->base, nbytes,
						&stream->counters, data) == 0;
	mmc_op_registered(request->op, request->registered, data->address,
			  data->key);
}

void mmc_request_deregister(struct mmc_request *request, bool failed)
{
	struct mmc_team *team = request->stream->team;

	if (request->registered && failed)
		mmc_team_deregister_later(team, &request->data, NULL);
	else if (request->registered)
		mmc_team_deregister(team, &request->data);
	request->registered = false;
}
