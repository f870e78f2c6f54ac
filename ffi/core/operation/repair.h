/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of polling an operation that repair what multicast has lost. */
#ifndef MMC_CORE_OPERATION_REPAIR_H
#define MMC_CORE_OPERATION_REPAIR_H

#include "core/operation/op.h"

/*
 * Sends NAKs for lost chunks, or hands these to the policy if it gets chunks in another
 * way, and asks about silent senders how much they have sent.
 */
void mmc_op_poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions);

/*
 * Carries out the steps of a policy that gets chunks in another way than by
 * mmc_op_poll_loss(): reads, and NAKs of its own.
 */
void mmc_op_poll_fetch(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

/*
 * Sends a batch of chunks that others have asked for; before a multicast, sends an NCF.
 */
void mmc_op_poll_repairer(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions);

/*
 * Registers the operation's memory and sends the right neighbour an advert of it, if the
 * neighbour has asked for that.
 */
void mmc_op_poll_advert(struct mmc_op *op, struct mmc_actions *actions);

/*
 * Adds to `actions`, which must have room, that the chunks of `run` are sent to `peer`,
 * or to all for MMC_PEER_ALL. With `repair`, they are sent again.
 */
void mmc_op_send_run(struct mmc_op *op, uint32_t peer, struct mmc_run run,
		     bool repair, struct mmc_actions *actions);

#endif
