/* SPDX-License-Identifier: BSD-3-Clause */
/* The control messages of an operation, each with its record. */
#ifndef MMC_CORE_OPERATION_TELL_H
#define MMC_CORE_OPERATION_TELL_H

#include "core/operation/op.h"

/* Writes a message of `kind` with the record and no items. */
void mmc_op_message(const struct mmc_op *op, enum mmc_message_kind kind,
		    struct mmc_message *message);

/* Adds `message` to `actions`, which must have room, as in all functions below. */
void mmc_op_tell(struct mmc_op *op, uint32_t peer,
		 const struct mmc_message *message,
		 struct mmc_actions *actions);

/* Sends the record to `peer`. */
void mmc_op_tell_record(struct mmc_op *op, uint32_t peer,
			struct mmc_actions *actions);

/* Sends the record to `peer` and asks for the record of `peer`. */
void mmc_op_ask_record(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
		       struct mmc_actions *actions);

/* Sends the right neighbour the advert. */
void mmc_op_tell_advert(struct mmc_op *op, struct mmc_actions *actions);

#endif
