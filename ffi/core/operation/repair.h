/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of an operation that mend what multicast has lost. */
#ifndef MMC_CORE_OPERATION_REPAIR_H
#define MMC_CORE_OPERATION_REPAIR_H

#include "core/operation/op.h"
#include "support/bits.h"

/* Asks for what is missing, and silent senders for how far they are. */
void mmc_op_poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions);

/* Fetches from the left neighbour's memory what is missing. */
void mmc_op_poll_fetcher(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions);

/* Sends what others have asked for, and tells them what will be. */
void mmc_op_poll_repairer(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/* Lets the right neighbour read, if it has asked for that. */
void mmc_op_poll_advert(struct mmc_op *op, struct mmc_actions *actions);

/* What came before the plan, or is surely lost, fills no buffer. */
void mmc_op_drain_passed(struct mmc_op *op);

/* Sends the chunks of `run`; there is room. */
void mmc_op_send_run(struct mmc_op *op, uint32_t peer, struct mmc_run run,
		     bool repair, struct mmc_actions *actions);

/* When to poll again for these reasons. */
static inline uint64_t mmc_op_repair_deadline(const struct mmc_op *op)
{
	uint64_t at_ns = mmc_loss_deadline(&op->loss);

	if (op->strategy->reads)
		at_ns = mmc_min_u64(at_ns, mmc_fetcher_deadline(&op->fetcher));
	return at_ns;
}

#endif
