/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks another host's kernel whether its process exists. A question travels as a
 * connection's packets do: it is answered after a round trip, whatever datagrams are
 * lost, unless that machine is off.
 */
#ifndef MMC_DRIVERS_SIM_INQUIRIES_H
#define MMC_DRIVERS_SIM_INQUIRIES_H

#include "drivers/driver.h"

/* The answer of a host to an inquiry about its process. */
enum mmc_sim_kernel {
	MMC_SIM_KERNEL_ACCEPTS, /* the process exists, running or stopped */
	MMC_SIM_KERNEL_REFUSES, /* the process has ended */
	MMC_SIM_KERNEL_OFF,	/* the machine is off, or cut off */
};

struct mmc_sim_endpoint;
struct mmc_sim_inquiry;

/* Asks about `peer`: the driver's `inquire`. */
void mmc_sim_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/* Answers the inquiries that are due. */
void mmc_sim_inquiries_due(struct mmc_sim_endpoint *endpoint);

/* Writes events of the answers, `nmax` at most. Returns how many. */
unsigned mmc_sim_inquiries_poll(struct mmc_sim_endpoint *endpoint,
				struct mmc_event *events, unsigned nmax);

/* Frees all inquiries, answered or not. */
void mmc_sim_inquiries_free(struct mmc_sim_endpoint *endpoint);

#endif
