/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other hosts' memory. A read travels to the host, takes its pieces one after
 * the other at that host's time, and comes back at the links' pace; it is never lost.
 * If the host is off, or does not let its memory be read, the connection breaks.
 */
#ifndef MMC_DRIVERS_SIM_READS_H
#define MMC_DRIVERS_SIM_READS_H

#include "drivers/sim/endpoint.h"

/* Members of struct mmc_driver. */
int mmc_sim_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			    size_t nbytes, struct mmc_region *region);
void mmc_sim_deregister_memory(struct mmc_endpoint *endpoint,
			       struct mmc_region *region);
int mmc_sim_read(struct mmc_endpoint *endpoint, uint32_t peer,
		 const struct mmc_piece *pieces, unsigned npieces,
		 uint64_t cookie);

/*
 * Reports reads that have ended; what they read lasts until mmc_sim_reads_give_back().
 */
unsigned mmc_sim_reads_poll(struct mmc_sim_endpoint *endpoint,
			    struct mmc_event *events, unsigned nmax);
void mmc_sim_reads_give_back(struct mmc_sim_endpoint *endpoint);

/* Frees all reads, whether under way or not. */
void mmc_sim_reads_free(struct mmc_sim_endpoint *endpoint);

#endif
