/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the kernel of another host whether the process there exists. Inquiries go over
 * connections, so no answer is lost: unless that host is off, the answer arrives after
 * a round trip.
 */
#ifndef MMC_DRIVERS_SIM_INQUIRIES_H
#define MMC_DRIVERS_SIM_INQUIRIES_H

#include "drivers/driver.h"

/* What the kernel of a host does with a connection to its process. */
enum mmc_sim_kernel {
	MMC_SIM_KERNEL_ACCEPTS, /* the process exists, running or stopped */
	MMC_SIM_KERNEL_REFUSES, /* the process has ended */
	MMC_SIM_KERNEL_OFF,	/* nothing: the host is off, or cut off */
};

struct mmc_sim_endpoint;
struct mmc_sim_inquiry;

/* The driver's `inquire`, as driver.h describes it. */
void mmc_sim_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/*
 * Takes the answers that have arrived by now. Call this when a timer of `inquiry_kind`
 * expires.
 */
void mmc_sim_inquiries_due(struct mmc_sim_endpoint *endpoint);

/* Writes events for the answers that were taken, `nmax` at most. Returns how many. */
unsigned mmc_sim_inquiries_poll(struct mmc_sim_endpoint *endpoint,
				struct mmc_event *events, unsigned nmax);

/* Drops all inquiries, answered or not. */
void mmc_sim_inquiries_free(struct mmc_sim_endpoint *endpoint);

#endif
