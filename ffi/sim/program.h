/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of a simulated rank: starts operations, one by one or all at once, and
 * checks what each has left in the buffers.
 */
#ifndef MMC_SIM_PROGRAM_H
#define MMC_SIM_PROGRAM_H

#include "sim/host.h"

/* Sets the timers of the first starts, and of the rank's death, end or cancellation. */
void mmc_program_plan(struct mmc_host *host);

/* Starts what is next on a stream, whose timer has fired. */
void mmc_program_start(struct mmc_host *host, uint32_t stream);

/* Cancels all operations in flight, as Ctrl-C does. */
void mmc_program_cancel(struct mmc_host *host);

/* Finishes operations that have completed; called after the engine has run. */
void mmc_program_poll(struct mmc_host *host);

#endif
