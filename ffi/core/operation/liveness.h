/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether the ranks that an operation waits for live, and when it gives up. */
#ifndef MMC_CORE_OPERATION_LIVENESS_H
#define MMC_CORE_OPERATION_LIVENESS_H

#include "core/operation/op.h"

/*
 * Fails the operation once its patience is used up; asks the transport about an awaited
 * rank that is silent, and tells all ranks of one that is late.
 */
void mmc_op_poll_liveness(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/* Returns when to call mmc_op_poll_liveness() again although nothing arrives. */
uint64_t mmc_op_liveness_deadline(const struct mmc_op *op);

/* Returns whether it is time to ask the awaited rank; a silent one is asked rarely. */
bool mmc_op_ask_due(struct mmc_op *op, uint64_t now_ns);

/*
 * Takes the evidence in a message of `source`: that `source` is not late, and which
 * other rank is.
 */
void mmc_op_hear_late(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
