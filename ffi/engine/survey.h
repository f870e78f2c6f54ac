/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Surveys: they show how well each rank hears each other rank, for the doctor. Numbered
 * datagrams of the team's own channel are counted by sender. Operations never use them.
 */
#ifndef MMC_ENGINE_SURVEY_H
#define MMC_ENGINE_SURVEY_H

#include "engine/state.h"

/* The kind of a datagram, in place of a control message's kind. */
enum {
	MMC_SURVEY_COUNT = 1,  /* counted */
	MMC_SURVEY_ASK = 2,    /* counted and answered */
	MMC_SURVEY_ANSWER = 3, /* answers the sender's latest question */
};

/* The latest question of a rank, while it waits for its answer. */
struct mmc_survey_question {
	bool open;
	uint32_t number;
	uint32_t stamp_us;
};

struct mmc_survey {
	uint32_t id;
	uint32_t nnumbers;
	uint32_t nwords;	   /* words of 64 numbers each, per rank */
	uint32_t nopen;		   /* open questions */
	uint64_t *seen;		   /* bitmaps of numbers, [nranks * nwords] */
	struct mmc_hearing *heard; /* [nranks] */
	struct mmc_survey_question *questions; /* [nranks] */
};

/* Returns a survey of `nnumbers` numbers among `nranks` ranks, or NULL. */
struct mmc_survey *mmc_survey_new(uint32_t id, uint32_t nnumbers,
				  uint32_t nranks);

/* Returns the time that a body carries, on the asker's clock. */
uint32_t mmc_survey_time_us(uint64_t now_ns);

/* Writes a body of MMC_SURVEY_BYTES_MIN. */
void mmc_survey_write_body(uint8_t *body, uint32_t id, uint32_t stamp_us);

/* Handles a datagram of the team's own channel that is not a probe. */
void mmc_team_surveyed(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, const uint8_t *body,
		       uint32_t nbytes, uint64_t now_ns);

/* Answers all open questions. */
void mmc_survey_answer(struct mmc_team *team);

void mmc_survey_free(struct mmc_survey *survey);

#endif
