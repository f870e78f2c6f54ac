/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about senders of whom nothing comes go up the tree of reports, so that no
 * sender is asked by all: a parent says what it knows, and asks on if that is no more
 * than its child knows. The root asks the sender itself, which then tells all. Who has
 * no word from its parent asks the sender as well.
 */
#ifndef MMC_CORE_OPERATION_SILENCE_H
#define MMC_CORE_OPERATION_SILENCE_H

#include "core/operation/op.h"

/* Asks about senders that are silent. */
void mmc_op_ask_silent(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

/* Answers the ranks below, and tells all how much is sent, if the root asked. */
void mmc_op_tell_sent(struct mmc_op *op, struct mmc_actions *actions);

/* A message of `source` has come: what it tells of how much ranks have sent. */
void mmc_op_hear_sent(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns);

#endif
