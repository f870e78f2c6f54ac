/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands for adverts and fetches, which the program of an adapter is built without: its
 * device reads no memory of others, and lets nobody read its own.
 */
#include "engine/advert.h"
#include "engine/fetch.h"

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
