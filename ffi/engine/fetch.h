/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches: reads of another rank's memory that are in flight. Each has a slot, whose
 * number is the cookie in the driver's event that the read has ended. If the operation
 * ends first, the slot stays in use until that event.
 */
#ifndef MMC_ENGINE_FETCH_H
#define MMC_ENGINE_FETCH_H

#include "core/operation/action.h"
#include "drivers/driver.h"

struct mmc_request;
struct mmc_team;

struct mmc_fetch {
	struct mmc_request *request; /* NULL once its operation has ended */
	struct mmc_run run; /* chunks or, if `reads_map`, words of the bitmap */
	bool in_use;	    /* the slot has a read */
	bool reads_map;	    /* the read is of the bitmap, not of chunks */
	bool waiting;	    /* the driver had no room: to be submitted again */
};

struct mmc_fetches {
	struct mmc_fetch *slots;
	uint32_t nslots;
	uint32_t nwaiting; /* slots with `waiting` */
};

/*
 * Carries out the action READ or READ_MAP: begins a read. The operation is told when
 * the read has ended, well or not; at once if it cannot begin.
 */
void mmc_request_fetch(struct mmc_request *request,
		       const struct mmc_action *action);

/*
 * Handles the event that a read has ended: tells the operation, and places the chunks
 * that the read has brought.
 */
void mmc_team_on_fetched(struct mmc_team *team, const struct mmc_event *event,
			 uint64_t now_ns);

/* Submits waiting reads again, until the driver has no more room. */
void mmc_team_fetch_waiting(struct mmc_team *team);

/* Forgets a request's reads, since its operation has ended and needs no results. */
void mmc_request_forget_fetches(struct mmc_request *request);

/* Frees the slots. The driver must have ended all reads. */
void mmc_fetches_close(struct mmc_fetches *fetches);

#endif
