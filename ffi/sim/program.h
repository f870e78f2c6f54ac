/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program that every simulated rank runs. It starts operations, one by one or all
 * at once, and checks what each leaves in the buffers.
 */
#ifndef MMC_SIM_PROGRAM_H
#define MMC_SIM_PROGRAM_H

#include "sim/host.h"

/*
 * Sets the timers of the streams' first starts, and those of the rank's death, end and
 * cancellation, if the spec has them.
 */
void mmc_program_plan(struct mmc_host *host);

/*
 * Starts the next operation of a stream, or all that are left if the spec is pipelined.
 * Called when the stream's timer fires.
 */
void mmc_program_start(struct mmc_host *host, uint32_t stream);

/* Cancels all operations in flight, as Ctrl-C does. */
void mmc_program_cancel(struct mmc_host *host);

/* Checks the operations that have ended, and plans further starts. */
void mmc_program_poll(struct mmc_host *host);

#endif
