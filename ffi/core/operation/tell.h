/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the control messages of an operation, each of which has its record. */
#ifndef MMC_CORE_OPERATION_TELL_H
#define MMC_CORE_OPERATION_TELL_H

#include "core/barrier/answers.h"
#include "core/operation/op.h"
#include "core/operation/parity.h"

/* Writes to `message` one of `kind` that has the record and no items. */
void mmc_op_message(const struct mmc_op *op, enum mmc_message_kind kind,
		    struct mmc_message *message);

/*
 * Adds to `actions` that `message` is sent to `peer`, and returns that action. There must
 * be room for it, as for what the functions below add.
 */
struct mmc_action *mmc_op_tell(struct mmc_op *op, uint32_t peer,
			       const struct mmc_message *message,
			       struct mmc_actions *actions);

/* Sends this rank's record to `peer`. */
void mmc_op_tell_record(struct mmc_op *op, uint32_t peer,
			struct mmc_actions *actions);

/*
 * Sends this rank's record to `peer` a second time, right after the first, if there is room and
 * the operation has parity. Parity saves the round trip that a lost chunk costs, and the second
 * copy saves the round trip that a lost message costs. A rank that does not know yet what other
 * ranks want goes by the stream's previous operation.
 */
static inline void mmc_op_tell_again(struct mmc_op *op, uint32_t peer,
				     struct mmc_actions *actions)
{
	if (mmc_op_may_be_coded(&op->config) && op->mode == MMC_OP_STAGED &&
	    (op->config.path->coded || mmc_op_has_parity(op)) &&
	    mmc_actions_room(actions))
		mmc_op_tell_record(op, peer, actions);
}

/*
 * Sends this rank's record as an answer, or without a stamp to echo, and with the blocks
 * that the peer needs in the entry barrier, if this rank has them; but no answer repeats
 * several parts that may still arrive.
 */
void mmc_op_answer(struct mmc_op *op, const struct mmc_answer *answer,
		   uint64_t now_ns, struct mmc_actions *actions);

/*
 * Sends this rank's record to `peer`, and asks for the record of `peer`; if some parts of
 * what that brings have arrived, from the first missing one on.
 */
void mmc_op_ask_record(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
		       struct mmc_actions *actions);

/* Sends this rank's advert to the right neighbour. */
void mmc_op_tell_advert(struct mmc_op *op, struct mmc_actions *actions);

#endif
