/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about silent senders go up the tree of reports, so that no sender is asked
 * by all ranks. A parent says what it knows. If that is no more than its child knows,
 * it asks its own parent; the root asks the sender itself, which then tells all ranks.
 * A rank that gets no answer from its parent asks the sender, too.
 */
#ifndef MMC_CORE_OPERATION_SILENCE_H
#define MMC_CORE_OPERATION_SILENCE_H

#include "core/operation/op.h"

/* Asks the parent about senders that are silent now, or the senders themselves. */
void mmc_op_ask_silent(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

/*
 * Answers the questions of the ranks below. If the root has asked how much this rank
 * has sent, tells all ranks.
 */
void mmc_op_tell_sent(struct mmc_op *op, struct mmc_actions *actions);

/*
 * Takes a message of `source`: it may be a question of a child, the parent's answer
 * about other senders, or the root's question about this rank.
 */
void mmc_op_hear_sent(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
