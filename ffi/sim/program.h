/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated rank's user does: starts operations, one by one or all at
 * once, and checks what each has left in the buffers.
 */
#ifndef MMC_SIM_PROGRAM_H
#define MMC_SIM_PROGRAM_H

#include "sim/host.h"

/* Sets the timers of the first starts and of the rank's death. */
void mmc_program_plan(struct mmc_host *host);

/* Goes on with a stream: its timer has come. */
void mmc_program_start(struct mmc_host *host, uint32_t stream);

/* Gives up all operations in flight, as Ctrl-C does. */
void mmc_program_cancel(struct mmc_host *host);

/* Looks after all operations in flight: the engine has run. */
void mmc_program_poll(struct mmc_host *host);

#endif
