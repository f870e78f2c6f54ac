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

/* What a datagram is, in the place of a control message's kind. */
enum {
	KIND_COUNT = 1,	 /* to be counted */
	KIND_ASK = 2,	 /* likewise, and answered */
	KIND_ANSWER = 3, /* of the latest that was asked */
};

/* The body begins with the survey's id u32 and the asker's time u32, in us. */
#define STAMP_OFFSET 4

/* A rank's question that waits for its answer. */
struct question {
	bool open;
	uint32_t number;
	uint32_t stamp_us;
};

struct mmc_survey {
	uint32_t id;
	uint32_t nnumbers;
	uint32_t nwords;	    /* of 64 numbers each, for a rank */
	uint32_t nopen;		    /* questions */
	uint64_t *seen;		    /* [nranks * nwords] */
	struct mmc_hearing *heard;  /* [nranks] */
	struct question *questions; /* [nranks] */
};

void mmc_survey_free(struct mmc_survey *survey)
{
	if (survey == NULL)
		return;
	free(survey->seen);
	free(survey->heard);
	free(survey->questions);
	free(survey);
}

static struct mmc_survey *new_survey(uint32_t id, uint32_t nnumbers,
				     uint32_t nranks)
{
	struct mmc_survey *survey = calloc(1, sizeof(*survey));

	if (survey == NULL)
		return NULL;
	survey->id = id;
	survey->nnumbers = nnumbers;
	survey->nwords = (nnumbers + 63) / 64;
	survey->seen =
		calloc((size_t)nranks * survey->nwords, sizeof(*survey->seen));
	survey->heard = calloc(nranks, sizeof(*survey->heard));
	survey->questions = calloc(nranks, sizeof(*survey->questions));
	if (survey->seen != NULL && survey->heard != NULL &&
	    survey->questions != NULL)
		return survey;
	mmc_survey_free(survey);
	return NULL;
}

int mmc_team_survey_begin(struct mmc_team *team, uint32_t id, uint32_t nnumbers)
{
	struct mmc_survey *survey;
	int rv;

	if (nnumbers == 0 || nnumbers > MMC_SURVEY_NUMBERS_MAX) {
		mmc_error_set("a survey of %u numbers; 1 to %u are possible",
			      nnumbers, MMC_SURVEY_NUMBERS_MAX);
		return -MMC_EINVAL;
	}
	survey = new_survey(id, nnumbers, team->options.nranks);
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

/* ---- what comes ---------------------------------------------------------- */

static uint32_t time_us(uint64_t now_ns)
{
	return (uint32_t)(now_ns / MMC_US_NS);
}

static void count(struct mmc_survey *survey, uint32_t source, uint32_t number,
		  uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_hearing *heard = &survey->heard[source];
	uint64_t *seen = &survey->seen[(size_t)source * survey->nwords];
	uint64_t bit = UINT64_C(1) << number % 64;

	if (seen[number / 64] & bit) {
		heard->nduplicates++;
		return;
	}
	seen[number / 64] |= bit;
	if (heard->ndistinct++ == 0)
		heard->first_ns = now_ns;
	heard->last_ns = now_ns;
	heard->longest_bytes = mmc_max_u32(heard->longest_bytes, nbytes);
}

static void hear_answer(struct mmc_survey *survey, uint32_t source,
			uint32_t stamp_us, uint64_t now_ns)
{
	struct mmc_hearing *heard = &survey->heard[source];
	uint32_t trip_us = time_us(now_ns) - stamp_us;

	heard->nanswers++;
	if (heard->nanswers == 1 || trip_us < heard->round_trip_us)
		heard->round_trip_us = trip_us;
}

void mmc_team_surveyed(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, const uint8_t *body,
		       uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_survey *survey = team->survey;
	uint32_t kind = header->index & MMC_INDEX_MASK;
	uint32_t stamp_us;

	if (survey == NULL || !(header->index & MMC_INDEX_CONTROL) ||
	    kind > KIND_ANSWER || nbytes < MMC_SURVEY_BYTES_MIN ||
	    mmc_get_u32(body) != survey->id ||
	    header->epoch >= survey->nnumbers) {
		mmc_count(&team->counters, MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return;
	}
	stamp_us = mmc_get_u32(body + STAMP_OFFSET);
	if (kind == KIND_ANSWER) {
		hear_answer(survey, source, stamp_us, now_ns);
		return;
	}
	count(survey, source, header->epoch, nbytes, now_ns);
	if (kind != KIND_ASK)
		return;
	survey->nopen += !survey->questions[source].open;
	survey->questions[source] =
		(struct question){ true, header->epoch, stamp_us };
}

/* ---- what leaves --------------------------------------------------------- */

static void write_body(uint8_t *body, uint32_t id, uint32_t stamp_us)
{
	mmc_put_u32(body, id);
	mmc_put_u32(body + STAMP_OFFSET, stamp_us);
}

void mmc_survey_answer(struct mmc_team *team)
{
	struct mmc_survey *survey = team->survey;
	struct mmc_endpoint *endpoint = team->endpoint;

	for (uint32_t r = 0; survey->nopen > 0 && r < team->options.nranks;
	     r++) {
		struct question *question = &survey->questions[r];
		uint8_t head[MMC_HEADER_BYTES + MMC_CRC_BYTES];
		uint8_t body[MMC_SURVEY_BYTES_MIN];
		struct mmc_parcel parcel = {
			.head = head,
			.body = body,
			.body_bytes = sizeof(body),
			.peer = r,
			.control = true,
		};

		if (!question->open)
			continue;
		question->open = false;
		survey->nopen--;
		write_body(body, survey->id, question->stamp_us);
		parcel.head_bytes =
			mmc_team_own_head(team, head, question->number,
					  KIND_ANSWER, body, sizeof(body));
		/* An answer that is lost is one that does not come. */
		endpoint->driver->send(endpoint, &parcel, 1);
	}
}

/* Sends the numbers from `first` on, at most BATCH. */
static int send_batch(struct mmc_team *team, const struct mmc_salvo *salvo,
		      const uint8_t *body, uint32_t first, uint32_t number)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint8_t heads[BATCH][MMC_HEADER_BYTES + MMC_CRC_BYTES];
	struct mmc_parcel parcels[BATCH];

	for (uint32_t i = 0; i < number; i++) {
		uint32_t kind = salvo->asks ? KIND_ASK : KIND_COUNT;

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

		write_body(body, team->survey->id,
			   time_us(mmc_team_now_ns(team)));
		rv = send_batch(team, salvo, body, salvo->first + sent, n);
		sent += n;
		/* What has come meanwhile needs the room. */
		mmc_engine_progress(team->engine);
	}
	free(body);
	mmc_engine_leave(team->engine);
	return rv;
}

int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard)
{
	/* Listening is waiting for an operation that is never over. */
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
