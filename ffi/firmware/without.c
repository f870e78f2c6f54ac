/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands for what the program of an adapter is built without. Its device reads no memory of
 * others, and lets nobody read its own: so there are no adverts and no fetches. And it
 * predicts nothing that is to arrive.
 */
#include "engine/advert.h"
#include "engine/destination.h"
#include "engine/fetch.h"
#include "engine/predictor.h"

uint64_t mmc_request_generation(struct mmc_request *request)
{
	(void)request;
	return 0;
}

/* Is never called, since no operation has a generation. */
void mmc_request_register(struct mmc_request *request)
{
	(void)request;
}

void mmc_request_revoke(struct mmc_request *request)
{
	(void)request;
}

/* Is never called, since no neighbour can be read. */
void mmc_request_fetch(struct mmc_request *request,
		       const struct mmc_action *action)
{
	(void)request;
	(void)action;
}

void mmc_team_on_fetched(struct mmc_team *team, const struct mmc_event *event,
			 uint64_t now_ns)
{
	(void)team;
	(void)event;
	(void)now_ns;
}

void mmc_team_fetch_waiting(struct mmc_team *team)
{
	(void)team;
}

void mmc_request_forget_fetches(struct mmc_request *request)
{
	(void)request;
}

void mmc_fetches_close(struct mmc_fetches *fetches)
{
	(void)fetches;
}

/* Chunks are not sent by chain, since that is of use to predictions alone. */
uint32_t mmc_request_subgroup(const struct mmc_request *request, uint32_t chunk)
{
	(void)request;
	(void)chunk;
	return 0;
}

bool mmc_request_is_predictable(const struct mmc_request *request)
{
	(void)request;
	return false;
}

struct mmc_predictor mmc_request_predictor(const struct mmc_request *request)
{
	return (struct mmc_predictor){
		.context = request,
		.header = {
			.channel = request->op->config.channel &
				   MMC_CHANNEL_MASK,
			.epoch = request->op->config.epoch,
		},
		.destination = mmc_request_destination,
	};
}
