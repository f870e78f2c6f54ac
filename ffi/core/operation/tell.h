/* SPDX-License-Identifier: BSD-3-Clause */
/* The control messages of an operation, each with its record. */
#ifndef MMC_CORE_OPERATION_TELL_H
#define MMC_CORE_OPERATION_TELL_H

#include "core/operation/op.h"

/* Begins a message that adds nothing to the record yet. */
void mmc_op_message(const struct mmc_op *op, enum mmc_message_kind kind,
		    struct mmc_message *message);

/* Adds `message` to `actions`, which must have room, as all below. */
void mmc_op_tell(struct mmc_op *op, uint32_t peer,
		 const struct mmc_message *message,
		 struct mmc_actions *actions);

/* Tells the record. */
void mmc_op_tell_record(struct mmc_op *op, uint32_t peer,
			struct mmc_actions *actions);

/* Tells the record and asks for the peer's. */
void mmc_op_ask_record(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
		       struct mmc_actions *actions);

/* Tells the right neighbour what it may read here. */
void mmc_op_tell_advert(struct mmc_op *op, struct mmc_actions *actions);

#endif
