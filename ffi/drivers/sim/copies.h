/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payloads that a simulated host copies to their places. Each copy is made some
 * time after it was asked for, and a later poll reports it.
 */
#ifndef MMC_DRIVERS_SIM_COPIES_H
#define MMC_DRIVERS_SIM_COPIES_H

#include "drivers/driver.h"

struct mmc_sim_copy;

/* Copies in the order in which they were asked for. */
struct mmc_sim_copies {
	struct mmc_sim_copy *due;	/* to be made, oldest first */
	struct mmc_sim_copy **due_end;	/* where the next one is linked in */
	struct mmc_sim_copy *made;	/* not yet reported, oldest first */
	struct mmc_sim_copy **made_end; /* where the next one is linked in */
};

/* Makes the lists empty; the structure is all zeros before. */
void mmc_sim_copies_init(struct mmc_sim_copies *copies);

/* Frees all copies, made or not. */
void mmc_sim_copies_free(struct mmc_sim_copies *copies);

/*
 * Keeps the payload `from`, to be copied to `to` later; the event that reports the copy
 * has `cookie`. Returns 0 or -MMC_ENOMEM.
 */
int mmc_sim_copies_add(struct mmc_sim_copies *copies, void *to,
		       const void *from, size_t nbytes, uint64_t cookie);

/* Makes the oldest copy, if there is one. */
void mmc_sim_copies_make(struct mmc_sim_copies *copies);

/* Drops the copies that have not been made: they never will be. */
void mmc_sim_copies_forget(struct mmc_sim_copies *copies);

/* Writes the events of copies that have been made, `nmax` at most; returns how many. */
unsigned mmc_sim_copies_poll(struct mmc_sim_copies *copies,
			     struct mmc_event *events, unsigned nmax);

#endif
