/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other hosts' memory. A read goes to the other host over a connection, copies
 * the stretches there one after the other, each at a time of its own, and comes back as
 * fast as the links carry the bytes. A read is never lost. It fails if the host has not
 * granted the memory to this one; if the host is off, the connection breaks, too.
 */
#ifndef MMC_DRIVERS_SIM_READS_H
#define MMC_DRIVERS_SIM_READS_H

#include "drivers/sim/endpoint.h"

/* The driver's functions of these names, as driver.h describes them. */
int mmc_sim_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			    size_t nbytes, struct mmc_region *region);
void mmc_sim_deregister_memory(struct mmc_endpoint *endpoint,
			       struct mmc_region *region);
int mmc_sim_grant_read(struct mmc_endpoint *endpoint, uint32_t peer,
		       const struct mmc_region *region, const void *memory,
		       size_t nbytes, struct mmc_grant *grant);
void mmc_sim_revoke_read(struct mmc_endpoint *endpoint,
			 struct mmc_grant *grant);
int mmc_sim_read(struct mmc_endpoint *endpoint, uint32_t peer,
		 const struct mmc_stretch *stretches, unsigned nstretches,
		 uint64_t cookie);

/*
 * Writes events for reads that have ended, `nmax` at most. Returns how many. What was
 * read stays valid until mmc_sim_reads_give_back() frees it.
 */
unsigned mmc_sim_reads_poll(struct mmc_sim_endpoint *endpoint,
			    struct mmc_event *events, unsigned nmax);
void mmc_sim_reads_give_back(struct mmc_sim_endpoint *endpoint);

/* Drops all reads, whether under way, ended or reported. */
void mmc_sim_reads_free(struct mmc_sim_endpoint *endpoint);

#endif
