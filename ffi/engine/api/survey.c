/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/survey.h"

#include <stdlib.h>

#include "engine/callers.h"
#include "engine/probe.h"
#include "engine/progress.h"
#include "support/clock.h"
#include "support/error.h"

/* Datagrams handed to the driver at a time. */
#define BATCH 32

int mmc_team_survey_begin(struct mmc_team *team, uint32_t id, uint32_t nnumbers)
{
	struct mmc_survey *survey;
	int rv;

	if (nnumbers == 0 || nnumbers > MMC_SURVEY_NUMBERS_MAX) {
		mmc_error_set("a survey of %u numbers; 1 to %u are possible",
			      nnumbers, MMC_SURVEY_NUMBERS_MAX);
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
	mmc_engine_leave(team->engine);
	return 0;
}

/* Sends `number` datagrams, at most BATCH, from number `first` on. */
static int send_batch(struct mmc_team *team, const struct mmc_salvo *salvo,
		      const uint8_t *body, uint32_t first, uint32_t number)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint8_t heads[BATCH][MMC_HEADER_BYTES + MMC_CRC_BYTES];
	struct mmc_parcel parcels[BATCH];

	for (uint32_t i = 0; i < number; i++) {
		uint32_t kind = salvo->asks ? MMC_SURVEY_ASK : MMC_SURVEY_COUNT;

		parcels[i] = (struct mmc_parcel){
			.head = heads[i],
			.body = body,
			.body_bytes = salvo->nbytes,
			.peer = salvo->peer,
			.subgroup = (first + i) % team->options.subgroups,
			.control = salvo->asks != 0,
		};
		parcels[i].head_bytes = mmc_team_own_head(
			team, heads[i], first + i, kind, body, salvo->nbytes);
	}
	return endpoint->driver->send(endpoint, parcels, number);
}

static int check_salvo(const struct mmc_team *team,
		       const struct mmc_salvo *salvo)
{
	const struct mmc_team_options *options = &team->options;
	bool all = salvo->peer == MMC_PEER_ALL;

	if (team->survey == NULL || !team->connected)
		mmc_error_set("no survey has begun");
	else if (all ? salvo->asks != 0 : salvo->peer >= options->nranks)
		mmc_error_set("rank %u of %u cannot be asked", salvo->peer,
			      options->nranks);
	else if (salvo->nbytes < MMC_SURVEY_BYTES_MIN ||
		 salvo->nbytes > options->chunk_bytes)
		mmc_error_set("%u bytes; %u to %u are possible", salvo->nbytes,
			      MMC_SURVEY_BYTES_MIN, options->chunk_bytes);
	else if (salvo->first > team->survey->nnumbers ||
		 salvo->count > team->survey->nnumbers - salvo->first)
		mmc_error_set("numbers %u and %u more, of %u", salvo->first,
			      salvo->count, team->survey->nnumbers);
	else
		return 0;
	return -MMC_EINVAL;
}

int mmc_team_survey_send(struct mmc_team *team, const struct mmc_salvo *salvo)
{
	uint32_t sent = 0;
	uint8_t *body;
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	rv = check_salvo(team, salvo);
	body = rv == 0 ? calloc(1, salvo->nbytes) : NULL;
	if (rv == 0 && body == NULL)
		rv = -MMC_ENOMEM;
	while (rv == 0 && sent < salvo->count) {
		uint32_t n = mmc_min_u32(BATCH, salvo->count - sent);

		mmc_survey_write_body(
			body, team->survey->id,
			mmc_survey_time_us(mmc_team_now_ns(team)));
		rv = send_batch(team, salvo, body, salvo->first + sent, n);
		sent += n;
		/* Makes room in the receive buffers for what arrives meanwhile. */
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
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (team->survey == NULL) {
		mmc_error_set("no survey has begun");
		rv = -MMC_EINVAL;
	} else {
		mmc_engine_run(team->engine, &listening,
			       mmc_clock_now_ns() + slice_ns);
		for (uint32_t r = 0; r < team->options.nranks; r++)
			heard[r] = team->survey->heard[r];
	}
	mmc_engine_leave(team->engine);
	return rv;
}
