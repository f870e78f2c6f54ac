/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of another rank's memory that are in flight. The driver carries the number of a
 * read's slot along. A slot whose operation has ended stays in use until its read
 * completes.
 */
#ifndef MMC_ENGINE_FETCH_H
#define MMC_ENGINE_FETCH_H

#include "core/operation/action.h"
#include "drivers/driver.h"

struct mmc_request;
struct mmc_team;

struct mmc_fetch {
	struct mmc_request *request; /* NULL once the result is not wanted */
	struct mmc_run run; /* words of the bitmap, if `map`, or chunks */
	bool used;
	bool map;     /* reads the bitmap, not chunks */
	bool waiting; /* the driver had no room: to be submitted again */
};

struct mmc_fetches {
	struct mmc_fetch *slots;
	uint32_t nslots;
	uint32_t nwaiting;
};

/* Begins the read of a READ or READ_MAP action; the operation is told when it ends. */
void mmc_request_fetch(struct mmc_request *request,
		       const struct mmc_action *action);

/* Handles the end of a read. */
void mmc_team_fetched(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns);

/* Submits waiting reads again: completed ones may have made room. */
void mmc_team_fetch_waiting(struct mmc_team *team);

/* Forgets a request's reads: it has ended, and does not want their results. */
void mmc_request_forget_fetches(struct mmc_request *request);

void mmc_fetches_close(struct mmc_fetches *fetches);

#endif
