/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans the flow of an operation from the terms that all ranks have agreed on. */
#ifndef MMC_CORE_OPERATION_BEGIN_H
#define MMC_CORE_OPERATION_BEGIN_H

#include "core/operation/op.h"

/*
 * Begins the flow of an operation that all ranks have entered: makes the schedule, and
 * expects chunks as it plans. Fails the operation if ranks have started different ones.
 */
void mmc_op_begin_flow(struct mmc_op *op, uint64_t now_ns);

#endif
