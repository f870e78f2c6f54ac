/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/survey.h"

#include <stdlib.h>

#include "engine/probe.h"

/*
 * A body begins with two 32-bit numbers: the survey's id, and a time in microseconds.
 */
#define STAMP_OFFSET 4

void mmc_survey_free(struct mmc_survey *survey)
{
	if (survey == NULL)
		return;
	free(survey->seen);
	free(survey->heard);
	free(survey->questions);
	free(survey);
}

struct mmc_survey *mmc_survey_new(uint32_t id, uint32_t nnumbers,
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

/* ---- receiving ----------------------------------------------------------- */

uint32_t mmc_survey_time_us(uint64_t now_ns)
{
	return (uint32_t)(now_ns / MMC_US_NS);
}

/* Counts datagram `number` of `source`, as a duplicate if it has come before. */
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

/* Counts an answer, and measures the round trip since the question's sending. */
static void hear_answer(struct mmc_survey *survey, uint32_t source,
			uint32_t stamp_us, uint64_t now_ns)
{
	struct mmc_hearing *heard = &survey->heard[source];
	uint32_t trip_us = mmc_survey_time_us(now_ns) - stamp_us;

	heard->nanswers++;
	if (heard->nanswers == 1 || trip_us < heard->round_trip_us)
		heard->round_trip_us = trip_us;
}

bool mmc_team_on_survey(struct mmc_team *team, uint32_t source,
			const struct mmc_header *header, const uint8_t *body,
			uint32_t nbytes, uint64_t now_ns)
{
	struct mmc_survey *survey = team->survey;
	uint32_t kind = header->index & MMC_INDEX_MASK;
	uint32_t stamp_us;

	if (survey == NULL || !mmc_header_is_control(header->index) ||
	    kind > MMC_SURVEY_ANSWER || nbytes < MMC_SURVEY_BYTES_MIN ||
	    mmc_get_u32(body) != survey->id ||
	    header->epoch >= survey->nnumbers)
		return false;
	stamp_us = mmc_get_u32(body + STAMP_OFFSET);
	if (kind == MMC_SURVEY_ANSWER) {
		hear_answer(survey, source, stamp_us, now_ns);
		return true;
	}
	count(survey, source, header->epoch, nbytes, now_ns);
	if (kind != MMC_SURVEY_ASK)
		return true;
	survey->nopen += !survey->questions[source].open;
	survey->questions[source] = (struct mmc_survey_question){
		.open = true,
		.number = header->epoch,
		.stamp_us = stamp_us,
	};
	return true;
}

/* ---- sending ------------------------------------------------------------- */

void mmc_survey_write_body(uint8_t *body, uint32_t id, uint32_t stamp_us)
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
		struct mmc_survey_question *question = &survey->questions[r];
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
		mmc_survey_write_body(body, survey->id, question->stamp_us);
		parcel.head_bytes = mmc_team_write_head(team, head,
							question->number,
							MMC_SURVEY_ANSWER, body,
							sizeof(body));
		/* If sending fails, the asker sees that an answer is missing. */
		endpoint->driver->send(endpoint, &parcel, 1);
	}
}
