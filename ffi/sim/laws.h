/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run may cost: the laws that hold in every run in which all ranks succeed and
 * the network alone loses, and the figures that they bound.
 */
#ifndef MMC_SIM_LAWS_H
#define MMC_SIM_LAWS_H

#include "sim/result.h"

/* Writes the figures of a run that is over. */
void mmc_laws_measure(const struct mmc_run_state *run,
		      struct mmc_sim_figures *figures);

/* Adds a finding for each law that the figures break. */
void mmc_laws_check(struct mmc_run_state *run,
		    const struct mmc_sim_figures *figures);

#endif
