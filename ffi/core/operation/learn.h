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

#endif
