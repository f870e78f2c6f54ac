/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The laws on what a run may cost, and the figures that they bound. The laws hold in
 * every run in which all ranks succeed and the network alone loses datagrams.
 */
#ifndef MMC_SIM_LAWS_H
#define MMC_SIM_LAWS_H

#include "sim/result.h"

/* Writes the figures of a run that has ended. */
void mmc_laws_measure(const struct mmc_run_state *run,
		      struct mmc_sim_figures *figures);

/* Records a violation for each law that the figures break. */
void mmc_laws_check(struct mmc_run_state *run,
		    const struct mmc_sim_figures *figures);

#endif
