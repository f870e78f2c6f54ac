/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of another rank's memory that are under way. The driver carries a slot's
 * number along; a slot whose operation has ended waits for its read to be over.
 */
#ifndef MMC_ENGINE_FETCH_H
#define MMC_ENGINE_FETCH_H

#include "core/operation/action.h"
#include "drivers/driver.h"

struct mmc_request;
struct mmc_team;

struct mmc_fetch {
	struct mmc_request *request; /* NULL once nobody wants it any more */
	struct mmc_run run;	     /* of words or of chunks */
	bool used;
	bool map;     /* of the bitmap */
	bool waiting; /* the driver had no room for it */
};

struct mmc_fetches {
	struct mmc_fetch *slots;
	uint32_t nslots;
	uint32_t nwaiting;
};

/* Begins what a READ or READ_MAP action says; the operation hears the end. */
void mmc_request_fetch(struct mmc_request *request,
		       const struct mmc_action *action);

/* A read is over. */
void mmc_team_fetched(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns);

/* Begins reads that had to wait; others may have made room. */
void mmc_team_fetch_waiting(struct mmc_team *team);

/* The request has ended, and with it the interest in what it reads. */
void mmc_request_forget_fetches(struct mmc_request *request);

void mmc_fetches_close(struct mmc_fetches *fetches);

#endif
