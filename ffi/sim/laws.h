/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The laws: upper bounds on what a run may cost, such as repairs and control datagrams.
 * The figures are the costs that a run had. The laws hold in every run in which all
 * ranks succeed and only the network loses datagrams.
 */
#ifndef MMC_SIM_LAWS_H
#define MMC_SIM_LAWS_H

#include "sim/result.h"

/* Writes the figures of a run that has ended. */
void mmc_laws_measure(const struct mmc_run_state *run,
		      struct mmc_sim_figures *figures);

/* Records a violation if the figures break a law; the first broken law counts. */
void mmc_laws_check(struct mmc_run_state *run,
		    const struct mmc_sim_figures *figures);

#endif
