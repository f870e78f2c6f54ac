/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about silent senders go up the tree of reports, so that no sender is asked
 * by all ranks: a parent says what it knows, and asks on if that is no more than its
 * child knows. The root asks the sender itself, which then tells all ranks. A rank that
 * gets no word from its parent asks the sender as well.
 */
#ifndef MMC_CORE_OPERATION_SILENCE_H
#define MMC_CORE_OPERATION_SILENCE_H

#include "core/operation/op.h"

/* Asks about senders that are silent. */
void mmc_op_ask_silent(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

/*
 * Answers the ranks below, and tells all ranks how much this one has sent if the root
 * asked.
 */
void mmc_op_tell_sent(struct mmc_op *op, struct mmc_actions *actions);

/* Learns from a message of `source` how much ranks have sent. */
void mmc_op_hear_sent(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
