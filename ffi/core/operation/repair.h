/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions by which an operation repairs multicast losses. */
#ifndef MMC_CORE_OPERATION_REPAIR_H
#define MMC_CORE_OPERATION_REPAIR_H

#include "core/operation/op.h"

/* Asks for missing chunks, and asks silent senders how much they have sent. */
void mmc_op_poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions);

/* Gets missing chunks in the policy's own way. */
void mmc_op_poll_fetch(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

/* Sends the chunks that others have asked for, and announces repairs by multicast. */
void mmc_op_poll_repairer(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/* Lets the right neighbour read this rank's memory, if it has asked for that. */
void mmc_op_poll_advert(struct mmc_op *op, struct mmc_actions *actions);

/* Reports chunks that are here, late or lost as drained: they fill no buffer. */
void mmc_op_drain_passed(struct mmc_op *op);

/* Sends the chunks of `run`; there must be room. */
void mmc_op_send_run(struct mmc_op *op, uint32_t peer, struct mmc_run run,
		     bool repair, struct mmc_actions *actions);

#endif
