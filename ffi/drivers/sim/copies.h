/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads that a simulated host copies to their places: each copy is due some time
 * after it was asked for, and is reported by a later poll.
 */
#ifndef MMC_DRIVERS_SIM_COPIES_H
#define MMC_DRIVERS_SIM_COPIES_H

#include "drivers/driver.h"

struct mmc_sim_copy;

/* Copies in the order in which they were asked for. */
struct mmc_sim_copies {
	struct mmc_sim_copy *due; /* to be made */
	struct mmc_sim_copy **due_end;
	struct mmc_sim_copy *made; /* not yet reported */
	struct mmc_sim_copy **made_end;
};

void mmc_sim_copies_init(struct mmc_sim_copies *copies);

void mmc_sim_copies_free(struct mmc_sim_copies *copies);

/* Takes the payload `from`, to be copied to `to` later. Returns 0 or -MMC_ENOMEM. */
int mmc_sim_copies_add(struct mmc_sim_copies *copies, void *to,
		       const void *from, size_t nbytes, uint64_t cookie);

/* Makes the oldest copy, if there is one. */
void mmc_sim_copies_make(struct mmc_sim_copies *copies);

/* Forgets the copies that have not been made. */
void mmc_sim_copies_forget(struct mmc_sim_copies *copies);

/* Writes the events of copies that have been made, `nmax` at most; returns how many. */
unsigned mmc_sim_copies_poll(struct mmc_sim_copies *copies,
			     struct mmc_event *events, unsigned nmax);

#endif
