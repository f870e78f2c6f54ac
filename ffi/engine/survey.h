/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How well each rank hears each other: numbered datagrams of the team's own
 * channel, counted by whom they come from. For those who look for faults of the
 * network; operations never do this.
 */
#ifndef MMC_ENGINE_SURVEY_H
#define MMC_ENGINE_SURVEY_H

#include "engine/state.h"

/* What a datagram is, in the place of a control message's kind. */
enum {
	MMC_SURVEY_COUNT = 1,  /* to be counted */
	MMC_SURVEY_ASK = 2,    /* likewise, and answered */
	MMC_SURVEY_ANSWER = 3, /* of the latest that was asked */
};

/* A rank's question that waits for its answer. */
struct mmc_survey_question {
	bool open;
	uint32_t number;
	uint32_t stamp_us;
};

struct mmc_survey {
	uint32_t id;
	uint32_t nnumbers;
	uint32_t nwords;	   /* of 64 numbers each, for a rank */
	uint32_t nopen;		   /* questions */
	uint64_t *seen;		   /* [nranks * nwords] */
	struct mmc_hearing *heard; /* [nranks] */
	struct mmc_survey_question *questions; /* [nranks] */
};

/* Returns a survey of `nnumbers` numbers among `nranks` ranks, or NULL. */
struct mmc_survey *mmc_survey_new(uint32_t id, uint32_t nnumbers,
				  uint32_t nranks);

/* The time that a body carries, of the asker's clock. */
uint32_t mmc_survey_time_us(uint64_t now_ns);

/* Writes a body of MMC_SURVEY_BYTES_MIN. */
void mmc_survey_write_body(uint8_t *body, uint32_t id, uint32_t stamp_us);

/* A datagram of the team's own channel that is no probe has come. */
void mmc_team_surveyed(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, const uint8_t *body,
		       uint32_t nbytes, uint64_t now_ns);

/* Answers those who have asked. */
void mmc_survey_answer(struct mmc_team *team);

void mmc_survey_free(struct mmc_survey *survey);

#endif
