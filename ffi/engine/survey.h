/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How well each rank hears each other: numbered datagrams of the team's own
 * channel, counted by whom they come from. For those who look for faults of the
 * network; operations never do this.
 */
#ifndef MMC_ENGINE_SURVEY_H
#define MMC_ENGINE_SURVEY_H

#include "engine/state.h"

/* A datagram of the team's own channel that is no probe has come. */
void mmc_team_surveyed(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, const uint8_t *body,
		       uint32_t nbytes, uint64_t now_ns);

/* Answers those who have asked. */
void mmc_survey_answer(struct mmc_team *team);

void mmc_survey_free(struct mmc_survey *survey);

#endif
