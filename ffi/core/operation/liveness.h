/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out whether the ranks that an operation awaits are alive, and when to give up.
 */
#ifndef MMC_CORE_OPERATION_LIVENESS_H
#define MMC_CORE_OPERATION_LIVENESS_H

#include "core/operation/op.h"

/*
 * Fails the operation if it has waited for too long. Otherwise asks the transport
 * whether the process of a silent rank still exists, if this rank waits for it, and
 * tells all ranks of one that is late.
 */
void mmc_op_poll_liveness(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/* Returns when to call mmc_op_poll_liveness() again even if nothing arrives. */
uint64_t mmc_op_liveness_deadline(const struct mmc_op *op);

/*
 * Returns whether to ask the awaited rank now, and sets the time of the next question.
 * The longer the rank is silent, the more rarely it is asked.
 */
bool mmc_op_ask_due(struct mmc_op *op, uint64_t now_ns);

/*
 * Takes the evidence in a message of `source`: `source` itself is not late, but another
 * rank may be.
 */
void mmc_op_hear_late(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
