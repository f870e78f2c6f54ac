/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose blocks the entry barrier's messages carry, as in the Allgather of
 * Bruck et al. (1997). A rank that tells another one in round k has heard the rounds
 * below, and so has the blocks of the 2^k ranks up to itself. It sends along as many of
 * these as the other one lacks. Who has heard all rounds has all blocks.
 *
 * The blocks of a round are adjacent in the message, which is cut into parts, one for each
 * datagram. They are numbered as ranks are; the only block of a Bcast has number 0.
 *
 * A Bcast may be *bare*: its block is carried by the root's word that it has entered,
 * which is multicast. The entry barrier is a star then: a rank that hears the root waits
 * for no other, and the root waits for none. Every fourth epoch leads: its operation has
 * a whole barrier, so that no rank is further ahead of another than what is kept for it.
 * A bare Bcast is like that of the epoch that led, on which all ranks agreed. So a rank
 * that starts something else knows that the others may wait for no barrier.
 */
#ifndef MMC_CORE_OPERATION_CARRIED_H
#define MMC_CORE_OPERATION_CARRIED_H

#include "core/operation/op.h"

/*
 * The longest block of a bare Bcast. Ranks have room to park as many blocks of this length
 * as the root can be epochs ahead of them (engine/parking.h).
 */
#define MMC_BARE_BYTES_MAX (UINT32_C(16) << 10)

/* Returns whether operations of this epoch always have a whole barrier. */
static inline bool mmc_epoch_leads(uint32_t epoch)
{
	return epoch % MMC_EPOCHS_ACTIVE_MAX == 1;
}

/*
 * Sets whether the operation of `config` is a bare Bcast, and whether other ranks may
 * take it for one. `*lead` is kept from one operation of a stream to the next: the
 * signature of the last one whose epoch leads, if that was a small Bcast, or 0.
 */
void mmc_carried_bare(struct mmc_op_config *config, uint64_t *lead);

/* Returns whether an operation does without a whole barrier. */
static inline bool mmc_op_is_bare(const struct mmc_op *op)
{
	return op->entry.hub != MMC_PEER_NONE;
}

/*
 * Returns the blocks that this rank sends along when it tells `peer` that it has
 * entered, as MMC_ACTION_CONTROL has them; none if it is no partner of `peer`, or does
 * not have them all yet.
 */
struct mmc_run mmc_op_carried_to(const struct mmc_op *op, uint32_t peer);

/*
 * Takes a part of `nbytes`, from byte number `first` on, of the blocks that `source`
 * sends along. Returns what to do with it. If that is to place it, writes to `*run` which
 * these blocks are: after the last block follow those from 0 on. The caller must place
 * the part at once, and then call mmc_op_on_carried().
 */
enum mmc_verdict mmc_op_on_part(struct mmc_op *op, uint32_t source,
				uint32_t first, uint32_t nbytes,
				struct mmc_run *run);

/* Records that the part from byte `first` on, which `source` has sent, is in its place. */
void mmc_op_on_carried(struct mmc_op *op, uint32_t source, uint32_t first,
		       uint64_t now_ns);

/*
 * Returns the first byte of the first part that is missing of what `source` sends along;
 * 0 if it sends nothing. If no part is missing, no byte of them has this number.
 */
uint32_t mmc_op_missing_part(const struct mmc_op *op, uint32_t source);

/*
 * Notes that blocks of several parts go to `peer`. Until they have had the time to arrive,
 * mmc_op_has_lent() is true of it: a question that they have crossed is no reason to send
 * them again.
 */
void mmc_op_lend(struct mmc_op *op, uint32_t peer, uint64_t now_ns);
bool mmc_op_has_lent(const struct mmc_op *op, uint32_t peer, uint64_t now_ns);

#endif
