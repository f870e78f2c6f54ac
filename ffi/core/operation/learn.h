/* SPDX-License-Identifier: BSD-3-Clause */
/* Learns from a completed operation what the network can carry. */
#ifndef MMC_CORE_OPERATION_LEARN_H
#define MMC_CORE_OPERATION_LEARN_H

#include "core/operation/op.h"

/*
 * Counts how long the stages of the flow took, and lets the path learn from what the
 * operation has received and lost: its rate, its window, and whether multicast arrives.
 */
void mmc_op_learn(struct mmc_op *op, uint64_t now_ns);

/*
 * Narrows a widened window again if chunks of this rank's block were lost in an operation that
 * is being closed. On a long path other ranks ask for these only when this rank has sent its
 * whole block, and mmc_op_learn() has been called.
 */
void mmc_op_learn_last(const struct mmc_op *op);

/*
 * Learns from a completed operation, which took `time_ns` since it started, that this
 * rank waited for a processor for `delay_ns` of it, though it could have run.
 */
void mmc_op_learn_delay(struct mmc_op *op, uint64_t delay_ns, uint64_t time_ns);

#endif
