/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of an operation that codes: the parity of this rank's block goes out behind the
 * chunks that it protects, and what others' parity can mend is mended here.
 */
#ifndef MMC_CORE_OPERATION_PARITY_H
#define MMC_CORE_OPERATION_PARITY_H

#include "core/operation/op.h"

/* ---- for the engine ------------------------------------------------------ */

/* The most rows of an action PARITY: at least MMC_CODE_PARITY_MAX. */
#define MMC_PARITY_ROWS_MAX 32

/*
 * Takes a datagram of `source` that carries `payload_bytes` of the parity chunk which its
 * header's `index` names. Returns the slot, below mmc_op_slots(), in which to keep the
 * payload until a MEND uses it, or an enum mmc_unkept: the datagram is to be dropped.
 */
int mmc_op_on_parity(struct mmc_op *op, uint32_t source, uint32_t index,
		     size_t payload_bytes, uint64_t now_ns);

/* Returns the slots for parity chunks that an operation needs; 0 if it has no code. */
uint32_t mmc_op_slots(const struct mmc_op_config *config);

/* Returns group `group` of this rank's block, its chunks counted from the operation's first. */
struct mmc_group mmc_op_own_group(const struct mmc_op *op, uint32_t group);

/*
 * Returns the groups of this rank's block whose parity is yet to be sent unasked, which no
 * action PARITY has named so far. Outside the flow there are none.
 */
struct mmc_run mmc_op_unsent_parity(const struct mmc_op *op);

/* Returns the header of the datagram that carries row number `i` of an action PARITY. */
struct mmc_header mmc_op_parity_header(const struct mmc_op *op,
				       const struct mmc_action *action,
				       uint32_t i);

/* Describes what the action MEND asks for. */
void mmc_op_describe_mend(const struct mmc_op *op,
			  const struct mmc_action *action,
			  struct mmc_mend *mend);

/* Records that a group was mended, as the action MEND asked for. */
void mmc_op_on_mended(struct mmc_op *op, const struct mmc_action *action);

/* ---- for the rest of the operation ----------------------------------------- */

/*
 * Returns whether lost chunks are mended by a code. If so, the operation has begun, and its
 * blocks are multicast in turns.
 */
static inline bool mmc_op_is_coded(const struct mmc_op *op)
{
	return mmc_op_may_be_coded(&op->config) &&
	       op->mender->grouping.data_chunks > 0;
}

/* The rest of this section is for operations for which a code was asked. */

/* Returns the bytes of memory that an operation takes for its code. */
size_t mmc_op_parity_bytes(const struct mmc_op_config *config,
			   uint32_t nchunks);

/* Makes what the code needs in `memory`, mmc_op_parity_bytes() long. */
void mmc_op_init_parity(struct mmc_op *op, uint8_t *memory);

/*
 * Returns whether the operation is to be coded, once its mode is known: its blocks are
 * multicast in turns.
 */
bool mmc_op_is_to_be_coded(const struct mmc_op *op);

/* Returns whether parity is to go unasked, as far as this rank knows what ranks want. */
static inline bool mmc_op_has_parity(const struct mmc_op *op)
{
	return mmc_op_is_to_be_coded(op) &&
	       mmc_terms_parity(&op->record.terms) > 0;
}

/* Begins to code. The operation has its schedule and its turn. */
void mmc_op_begin_parity(struct mmc_op *op, uint64_t now_ns);

/* Returns whether parity is due of chunks that this rank has sent. */
static inline bool mmc_op_owes_parity(const struct mmc_op *op)
{
	const struct mmc_grouping *grouping;

	if (!mmc_op_is_coded(op))
		return false;
	grouping = &op->mender->grouping;
	return grouping->parity_chunks > 0 && op->turn.next == op->turn.stop &&
	       op->ncoded < mmc_grouping_count(grouping, op->turn.next);
}

/* Returns whether this rank has sent all of its block, and the parity of that. */
static inline bool mmc_op_has_sent_all(const struct mmc_op *op)
{
	return mmc_turn_ended(&op->turn) && !mmc_op_owes_parity(op);
}

/*
 * Sends a batch of the parity that is due, as far as there is room for actions. When that
 * was the last, the turn may go on to the end of the next span.
 */
void mmc_op_send_parity(struct mmc_op *op, struct mmc_actions *actions);

/*
 * Sends parity that answers the NAKs of several ranks. Returns whether there was any to be
 * sent now. There must be room for an action.
 */
bool mmc_op_poll_pooling(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions);

/*
 * Has groups mended that can be. While more datagrams may be waiting, these go first, unless
 * slots become few, or mending does not delay them.
 */
void mmc_op_poll_mends(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions);

#endif
