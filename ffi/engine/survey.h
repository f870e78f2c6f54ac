/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Surveys: by them the doctor learns how well each rank hears each other rank. The
 * ranks send numbered datagrams on the team's own channel, which is no stream's, and
 * each rank counts what it receives from each sender.
 */
#ifndef MMC_ENGINE_SURVEY_H
#define MMC_ENGINE_SURVEY_H

#include "engine/state.h"

/*
 * What a datagram is for. The value is in the header where a control message has its
 * kind; 0 is a probe. The datagram's number is in the place of the epoch.
 */
enum {
	MMC_SURVEY_COUNT = 1,  /* the receiver counts it */
	MMC_SURVEY_ASK = 2,    /* the receiver counts and answers it */
	MMC_SURVEY_ANSWER = 3, /* answers the latest one that asked */
};

/* The latest datagram of a rank that asked for an answer. */
struct mmc_survey_question {
	bool open; /* it has not been answered yet */
	uint32_t number;
	uint32_t stamp_us; /* when it was sent, on the asker's clock */
};

struct mmc_survey {
	uint32_t id;		   /* tells it from other surveys of the team */
	uint32_t nnumbers;	   /* numbers are below this */
	uint32_t nwords;	   /* words of 64 numbers each, per rank */
	uint32_t nopen;		   /* open questions */
	uint64_t *seen;		   /* bitmaps of numbers, [nranks * nwords] */
	struct mmc_hearing *heard; /* [nranks] */
	struct mmc_survey_question *questions; /* [nranks] */
};

/* Returns a new survey among `nranks` ranks, or NULL if there is not enough memory. */
struct mmc_survey *mmc_survey_new(uint32_t id, uint32_t nnumbers,
				  uint32_t nranks);

/* Returns a time as a datagram carries it: in microseconds, modulo 2^32. */
uint32_t mmc_survey_time_us(uint64_t now_ns);

/*
 * Writes the first MMC_SURVEY_BYTES_MIN of a datagram's body: the survey's id, and the
 * time of its sending or, in an answer, the time that the question carried.
 */
void mmc_survey_write_body(uint8_t *body, uint32_t id, uint32_t stamp_us);

/*
 * Handles a datagram of a survey. Returns false if it is not of the team's latest
 * survey.
 */
bool mmc_team_on_survey(struct mmc_team *team, uint32_t source,
			const struct mmc_header *header, const uint8_t *body,
			uint32_t nbytes, uint64_t now_ns);

/* Answers the open questions of all ranks. The team must have a survey. */
void mmc_survey_answer(struct mmc_team *team);

/* Frees a survey; NULL is allowed. */
void mmc_survey_free(struct mmc_survey *survey);

#endif
