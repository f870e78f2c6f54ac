/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/survey.h"

#include <stdlib.h>

#include "engine/probe.h"
#include "engine/progress.h"
#include "engine/remote/calls.h"
#include "engine/threads/callers.h"
#include "support/error.h"

/* The most datagrams that are handed to the driver at a time. */
#define BATCH 32

int mmc_team_survey_begin(struct mmc_team *team, uint32_t id, uint32_t nnumbers)
{
	struct mmc_survey *survey;
	int rv;

	if (nnumbers == 0 || nnumbers > MMC_SURVEY_NUMBERS_MAX) {
		mmc_error_set("a survey has 1 to %u numbers, not %u",
			      MMC_SURVEY_NUMBERS_MAX, nnumbers);
		return -MMC_EINVAL;
	}
	survey = mmc_survey_new(id, nnumbers, team->options.nranks);
	if (survey == NULL)
		return -MMC_ENOMEM;
	rv = mmc_engine_enter(team->engine);
	if (rv != 0) {
		mmc_survey_free(survey);
		return rv;
	}
	mmc_survey_free(team->survey);
	team->survey = survey;
	if (mmc_team_is_remote(team))
		rv = mmc_remote_survey_begin(team, id, nnumbers);
	mmc_engine_leave(team->engine);
	return rv;
}

/* Sends `number` datagrams, at most BATCH, from number `first` on. */
static int send_batch(struct mmc_team *team, const struct mmc_burst *burst,
		      const uint8_t *body, uint32_t first, uint32_t number)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint8_t heads[BATCH][MMC_HEADER_BYTES + MMC_CRC_BYTES];
	struct mmc_parcel parcels[BATCH];

	for (uint32_t i = 0; i < number; i++) {
		uint32_t kind = burst->asks ? MMC_SURVEY_ASK : MMC_SURVEY_COUNT;

		parcels[i] = (struct mmc_parcel){
			.head = heads[i],
			.body = body,
			.body_bytes = burst->nbytes,
			.peer = burst->peer,
			.subgroup = (first + i) % team->options.subgroups,
			.control = burst->asks != 0,
		};
		parcels[i].head_bytes = mmc_team_write_head(
			team, heads[i], first + i, kind, body, burst->nbytes);
	}
	return endpoint->driver->send(endpoint, parcels, number);
}

/* Returns 0, or -MMC_EINVAL with the reason if the team cannot send the burst. */
static int check_burst(const struct mmc_team *team,
		       const struct mmc_burst *burst)
{
	const struct mmc_team_options *options = &team->options;
	uint32_t nnumbers = team->survey == NULL ? 0 : team->survey->nnumbers;
	bool all = burst->peer == MMC_PEER_ALL;

	if (team->survey == NULL || !team->connected)
		mmc_error_set("no survey has begun on this team");
	else if (!all && burst->peer >= options->nranks)
		mmc_error_set("rank %u of %u ranks is out of range",
			      burst->peer, options->nranks);
	else if (all && burst->asks != 0)
		mmc_error_set("a multicast datagram cannot ask for answers");
	else if (burst->nbytes < MMC_SURVEY_BYTES_MIN ||
		 burst->nbytes > options->chunk_bytes)
		mmc_error_set("a payload has %u to %u bytes, not %u",
			      MMC_SURVEY_BYTES_MIN, options->chunk_bytes,
			      burst->nbytes);
	else if (burst->first > nnumbers ||
		 burst->count > nnumbers - burst->first)
		mmc_error_set("%u numbers from %u on exceed the survey's %u",
			      burst->count, burst->first, nnumbers);
	else
		return 0;
	return -MMC_EINVAL;
}

int mmc_team_survey_send(struct mmc_team *team, const struct mmc_burst *burst)
{
	uint32_t sent = 0;
	uint8_t *body;
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	rv = check_burst(team, burst);
	if (mmc_team_is_remote(team)) {
		if (rv == 0)
			rv = mmc_remote_survey_send(team, burst);
		mmc_engine_leave(team->engine);
		return rv;
	}
	body = rv == 0 ? calloc(1, burst->nbytes) : NULL;
	if (rv == 0 && body == NULL)
		rv = -MMC_ENOMEM;
	while (rv == 0 && sent < burst->count) {
		uint32_t n = mmc_min_u32(BATCH, burst->count - sent);

		mmc_survey_write_body(
			body, team->survey->id,
			mmc_survey_time_us(mmc_team_now_ns(team)));
		rv = send_batch(team, burst, body, burst->first + sent, n);
		sent += n;
		/* Other ranks send, too: make room in the receive buffers. */
		mmc_engine_progress(team->engine);
	}
	free(body);
	mmc_engine_leave(team->engine);
	return rv;
}

int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard)
{
	/* To listen is to wait for an operation that never completes. */
	struct mmc_request listening = { 0 };
	const struct mmc_goal goal = { .request = &listening };
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (team->survey == NULL) {
		mmc_error_set("no survey has begun on this team");
		rv = -MMC_EINVAL;
	} else if (mmc_team_is_remote(team)) {
		rv = mmc_remote_survey_listen(team, slice_ns, heard);
	} else {
		mmc_engine_wait_for(team->engine, &goal, slice_ns);
		for (uint32_t r = 0; r < team->options.nranks; r++)
			heard[r] = team->survey->heard[r];
	}
	mmc_engine_leave(team->engine);
	return rv;
}
