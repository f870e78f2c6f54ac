/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking another host's kernel whether its process exists. A question travels
 * as a connection's packets do: it is answered after a round trip, whatever
 * datagrams are lost, unless that machine is off.
 */
#ifndef MMC_DRIVERS_SIM_INQUIRIES_H
#define MMC_DRIVERS_SIM_INQUIRIES_H

#include "drivers/driver.h"

/* How a host answers an inquiry about its process. */
enum mmc_sim_kernel {
	MMC_SIM_KERNEL_ACCEPTS, /* the process exists, running or stopped */
	MMC_SIM_KERNEL_REFUSES, /* the process has ended */
	MMC_SIM_KERNEL_OFF,	/* the machine is off, or cut off */
};

struct mmc_sim_endpoint;
struct mmc_sim_inquiry;

/* The driver's call. */
void mmc_sim_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/* Lets the questions whose answer is due be answered. */
void mmc_sim_inquiries_due(struct mmc_sim_endpoint *endpoint);

/* Reports answers; returns how many. */
unsigned mmc_sim_inquiries_poll(struct mmc_sim_endpoint *endpoint,
				struct mmc_event *events, unsigned nmax);

/* Frees all questions, answered or not. */
void mmc_sim_inquiries_free(struct mmc_sim_endpoint *endpoint);

#endif
