/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other hosts' memory. A read travels there, takes its pieces one after
 * the other at that host's time, and comes back at the links' pace; it is never
 * lost. A host that is off, or memory that may not be read, breaks the
 * connection.
 */
#ifndef MMC_DRIVERS_SIM_REMOTE_H
#define MMC_DRIVERS_SIM_REMOTE_H

#include "drivers/sim/endpoint.h"

/* The driver's calls. */
int mmc_sim_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			    size_t nbytes, struct mmc_region *region);
void mmc_sim_deregister_memory(struct mmc_endpoint *endpoint,
			       struct mmc_region *region);
int mmc_sim_read(struct mmc_endpoint *endpoint, uint32_t peer,
		 const struct mmc_piece *pieces, unsigned npieces,
		 uint64_t cookie);

/* Reports reads that are over; they last until mmc_sim_reads_give_back(). */
unsigned mmc_sim_reads_poll(struct mmc_sim_endpoint *endpoint,
			    struct mmc_event *events, unsigned nmax);
void mmc_sim_reads_give_back(struct mmc_sim_endpoint *endpoint);

/* Frees all reads, under way or not. */
void mmc_sim_reads_free(struct mmc_sim_endpoint *endpoint);

#endif
