/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the ranks that an operation waits for live; when it gives up. */
#ifndef MMC_CORE_OPERATION_LIVENESS_H
#define MMC_CORE_OPERATION_LIVENESS_H

#include "core/operation/op.h"

/*
 * Fails the operation once its patience is used up; asks the transport about an
 * awaited rank that is silent, and tells all ranks of one that is late.
 */
void mmc_op_poll_liveness(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/* When to poll it again although nothing comes. */
uint64_t mmc_op_liveness_deadline(const struct mmc_op *op);

/* Whether it is time to ask the awaited rank; a silent one is asked rarely. */
bool mmc_op_ask_due(struct mmc_op *op, uint64_t now_ns);

/* Takes what a message of `source` says of a late rank, or shows of its own. */
void mmc_op_hear_late(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
