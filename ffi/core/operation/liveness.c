/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/liveness.h"

#include "core/operation/tell.h"
#include "support/bits.h"

/*
 * An *inquiry* asks the transport whether the process of a rank still exists. The
 * operation makes an inquiry once the rank has been silent for this long, or for a
 * quarter of TIMEOUT if that is less.
 */
#define SILENCE_NS (250 * MMC_MS_NS)

/* Inquiries are an eighth of TIMEOUT apart, within these bounds. */
#define INQUIRY_NS_MIN (20 * MMC_MS_NS)
#define INQUIRY_NS_MAX MMC_S_NS

/*
 * The longer a rank is silent, the longer are the pauses between questions to it, up to
 * this limit. Without the pauses, a stopped rank would find thousands of questions when
 * it resumes.
 */
#define ASK_NS_MAX (500 * MMC_MS_NS)

/*
 * While data flows, all ranks may ask the same rank. Each of them then pauses between
 * its questions for at least this time multiplied by the number of ranks, so that the
 * rank is asked at most 10,000 times a second in all. If that product is longer than an
 * eighth of TIMEOUT, the least pause is an eighth of TIMEOUT.
 */
#define ASK_NS_PER_RANK (100 * MMC_US_NS)

/*
 * How long a rank must have been silent before the user is told that it is late: a
 * shorter silence may only mean that the rank is busy.
 */
#define NAMED_SILENCE_NS (3 * MMC_S_NS)

/* Returns how long a rank must have been silent before an inquiry about it is made. */
static uint64_t silence_ns(const struct mmc_op *op)
{
	return mmc_min_u64(SILENCE_NS, op->config.timeout_ns / 4);
}

/* Returns the time between inquiries. */
static uint64_t inquiry_interval_ns(const struct mmc_op *op)
{
	return mmc_min_u64(mmc_max_u64(op->config.timeout_ns / 8,
				       INQUIRY_NS_MIN),
			   INQUIRY_NS_MAX);
}

/* Returns whether the awaited rank has been silent for at least silence_ns(). */
static bool is_silent(const struct mmc_op *op)
{
	return op->liveness.unheard_ns >= silence_ns(op);
}

/*
 * Returns whether there is reason for an inquiry: while data flows, that the operation
 * has not advanced for silence_ns(); in other states, that the awaited rank is silent.
 */
static bool needs_inquiry(const struct mmc_op *op)
{
	if (op->state == MMC_OP_FLOW)
		return op->liveness.stalled_ns >= silence_ns(op);
	return is_silent(op);
}

/*
 * Returns whether `peer` is silent and this rank waits for it, either as the awaited
 * rank or as the owner of missing chunks.
 */
static bool is_missed(const struct mmc_op *op, uint32_t peer)
{
	const struct mmc_liveness *liveness = &op->liveness;

	if (op->state > MMC_OP_RELEASE)
		return false;
	if (peer == mmc_op_awaited(op))
		return is_silent(op);
	return op->state == MMC_OP_FLOW && peer == liveness->owner &&
	       liveness->owner_unheard_ns >= silence_ns(op);
}

/* ---- patience ------------------------------------------------------------ */

/*
 * Returns how long the awaited rank may take to enter: ENTRY_TIMEOUT, and enough time
 * to ask the rank once more, since it may have entered at the last moment.
 */
static uint64_t entry_limit_ns(const struct mmc_op *op)
{
	return op->config.entry_timeout_ns + 2 * MMC_BACKOFF_MAX_NS;
}

/* Returns whether the awaited rank has not entered within entry_limit_ns(). */
static bool entry_is_overdue(const struct mmc_op *op)
{
	return op->state == MMC_OP_ENTRY && op->config.entry_timeout_ns != 0 &&
	       op->liveness.since_start_ns >= entry_limit_ns(op) &&
	       !mmc_barrier_passed(&op->entry) &&
	       !mmc_barrier_awaited_joined(&op->entry);
}

/*
 * Returns whether the awaited rank must answer. If ranks answer only inside calls of
 * the library, a rank that has not entered yet, or is done already, may be computing,
 * and then cannot answer.
 */
static bool expects_answer(const struct mmc_op *op)
{
	return !op->config.unattended || op->state == MMC_OP_FLOW;
}

/*
 * Returns the rank that is known to be late, or MMC_PEER_NONE if there is none or if
 * LATE_TIMEOUT has not passed yet. While data flows, the time counts from when the
 * operation last advanced, since any late rank holds all others up. In other states it
 * counts from when the awaited rank was last heard.
 */
static uint32_t overdue_rank(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;
	uint64_t waited_ns = op->state == MMC_OP_FLOW ? liveness->stalled_ns
						      : liveness->unheard_ns;

	if (op->config.late_timeout_ns == 0 || !expects_answer(op) ||
	    waited_ns < op->config.late_timeout_ns)
		return MMC_PEER_NONE;
	return mmc_liveness_late(liveness, op->config.timeout_ns);
}

/*
 * Returns the rank to blame when the operation does not advance: the owner of missing
 * chunks if it has been silent for TIMEOUT, since the awaited rank may itself wait for
 * the owner; otherwise, the awaited rank.
 */
static uint32_t stall_culprit(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;

	if (liveness->owner != MMC_PEER_NONE &&
	    liveness->owner_unheard_ns >= op->config.timeout_ns)
		return liveness->owner;
	return mmc_op_awaited(op);
}

/*
 * Fails the operation when a wait has reached its limit. If nothing has proven for
 * TIMEOUT that the awaited rank exists, the operation fails with the awaited rank as
 * the culprit. While data flows, the operation also fails if it has not advanced for
 * TIMEOUT and a quarter, and no late rank explains why. This second limit is longer for
 * the sake of ranks that await a living rank which itself awaits a dead one: the living
 * rank fails first, and tells them which rank is dead.
 */
static void check_patience(struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;
	uint64_t limit_ns = op->config.timeout_ns;
	uint32_t overdue = overdue_rank(op);

	if (entry_is_overdue(op))
		mmc_op_fail(op, MMC_ENOENTRY, mmc_op_awaited(op), true);
	else if (liveness->unproven_ns >= limit_ns && expects_answer(op))
		mmc_op_fail(op, MMC_ENOANSWER, mmc_op_awaited(op), true);
	else if (overdue != MMC_PEER_NONE)
		mmc_op_fail(op, MMC_ELATE, overdue, true);
	else if (op->state == MMC_OP_FLOW &&
		 liveness->unexplained_ns >= limit_ns + limit_ns / 4)
		mmc_op_fail(op, MMC_ENOPROGRESS, stall_culprit(op), true);
}

/* ---- inquiries ----------------------------------------------------------- */

/*
 * Returns the owner of the first missing chunk if the chunk is awaited from a rank that
 * is not its owner, such as a neighbour; otherwise, or if no chunk is missing,
 * MMC_PEER_NONE. The owner may be the only rank that knows which chunks it has sent.
 */
static uint32_t unawaited_owner(const struct mmc_op *op)
{
	const struct mmc_bitmap *present = &op->present;
	struct mmc_run missing;
	uint32_t owner;

	if (op->state != MMC_OP_FLOW)
		return MMC_PEER_NONE;
	missing = mmc_bitmap_next_clear(&present, 1, 0, op->layout.nchunks);
	if (missing.count == 0)
		return MMC_PEER_NONE;
	owner = mmc_layout_owner(&op->layout, missing.first);
	return owner == mmc_op_awaited(op) ? MMC_PEER_NONE : owner;
}

/*
 * Asks the owner of missing chunks for its record, unless it is the awaited rank. If
 * the owner is silent, also makes an inquiry about it.
 */
static void inquire_owner(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;
	uint32_t owner = unawaited_owner(op);

	if (owner != liveness->owner) {
		liveness->owner = owner;
		liveness->owner_unheard_ns = 0;
	}
	if (owner == MMC_PEER_NONE)
		return;
	if (mmc_actions_room(actions))
		mmc_op_ask_record(op, owner, now_ns, actions);
	if (mmc_actions_room(actions) &&
	    liveness->owner_unheard_ns >= silence_ns(op))
		mmc_actions_add(actions, MMC_ACTION_INQUIRE, op)->peer = owner;
}

/*
 * Makes an inquiry about the awaited rank if it is silent, and asks or inquires about
 * the owner of missing chunks.
 */
static void inquire(struct mmc_op *op, uint64_t now_ns,
		    struct mmc_actions *actions)
{
	uint32_t peer = mmc_op_awaited(op);

	op->liveness.inquire_ns = now_ns + inquiry_interval_ns(op);
	if (peer != MMC_PEER_NONE && is_silent(op))
		mmc_actions_add(actions, MMC_ACTION_INQUIRE, op)->peer = peer;
	inquire_owner(op, now_ns, actions);
}

/*
 * Multicasts which rank is late, unless this rank has recently done so, or has recently
 * heard of a late rank from another rank. Even ranks that do not await the late rank
 * must know of it, since they are held up by the ranks that do.
 */
static void tell_of_late_rank(struct mmc_op *op, uint64_t now_ns,
			      struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;

	/* If nothing is sent below, a late rank was reported recently enough. */
	liveness->witnessed = false;
	if (now_ns - liveness->told_ns < op->config.timeout_ns / 4)
		return;
	liveness->told_ns = now_ns;
	mmc_op_tell_record(op, MMC_PEER_ALL, actions);
}

void mmc_op_poll_liveness(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;

	if (op->state > MMC_OP_RELEASE)
		return;
	mmc_liveness_advance(liveness, now_ns);
	if (op->renewed) {
		op->renewed = false;
		mmc_liveness_renew(liveness);
	}
	check_patience(op);
	if (op->state > MMC_OP_RELEASE || !op->config.inquires)
		return;
	if (needs_inquiry(op) && now_ns >= liveness->inquire_ns &&
	    mmc_actions_room(actions))
		inquire(op, now_ns, actions);
	/* Late ranks that other ranks have found are announced by those ranks. */
	if (liveness->witnessed && mmc_actions_room(actions))
		tell_of_late_rank(op, now_ns, actions);
}

uint64_t mmc_op_liveness_deadline(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;
	uint64_t at_ns = MMC_NEVER_NS;

	if (expects_answer(op))
		at_ns = mmc_observe_deadline(liveness->observed_ns,
					     liveness->unproven_ns,
					     op->config.timeout_ns);
	if (op->config.inquires)
		at_ns = mmc_min_u64(at_ns, needs_inquiry(op)
						   ? liveness->inquire_ns
						   : liveness->observed_ns +
							     silence_ns(op));
	if (op->state == MMC_OP_ENTRY && op->config.entry_timeout_ns != 0)
		at_ns = mmc_min_u64(
			at_ns, mmc_observe_deadline(liveness->observed_ns,
						    liveness->since_start_ns,
						    entry_limit_ns(op)));
	return at_ns;
}

bool mmc_op_ask_due(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t pause_ns = 0;

	if (!mmc_backoff_fire(&op->asking, now_ns))
		return false;
	if (op->state <= MMC_OP_RELEASE)
		pause_ns =
			mmc_min_u64(op->liveness.unheard_ns / 16, ASK_NS_MAX);
	/* While data flows, all ranks may await the same rank, and so ask it. */
	if (op->state == MMC_OP_FLOW)
		pause_ns = mmc_max_u64(
			pause_ns,
			mmc_min_u64(op->config.nranks * ASK_NS_PER_RANK,
				    op->config.timeout_ns / 8));
	op->asking.at_ns = mmc_max_u64(op->asking.at_ns, now_ns + pause_ns);
	return true;
}

/* ---- evidence ------------------------------------------------------------ */

void mmc_op_on_alive(struct mmc_op *op, uint32_t peer)
{
	struct mmc_liveness *liveness = &op->liveness;

	if (!is_missed(op, peer))
		return;
	mmc_liveness_note(liveness, peer, liveness->observed_ns,
			  peer == mmc_op_awaited(op));
	liveness->witnessed = true;
}

void mmc_op_on_gone(struct mmc_op *op, uint32_t peer)
{
	if (is_missed(op, peer))
		mmc_op_fail(op, MMC_EGONE, peer, true);
}

bool mmc_op_awaits_late(const struct mmc_op *op)
{
	return op->state <= MMC_OP_RELEASE &&
	       op->liveness.unheard_ns >= NAMED_SILENCE_NS &&
	       mmc_op_awaited(op) != MMC_PEER_NONE &&
	       mmc_op_awaited(op) ==
		       mmc_liveness_late(&op->liveness, op->config.timeout_ns);
}

void mmc_op_hear_late(struct mmc_op *op, uint32_t source,
		      const struct mmc_message *message, uint64_t now_ns)
{
	struct mmc_liveness *liveness = &op->liveness;
	uint64_t age_ns = message->late_age_ms * MMC_MS_NS;

	mmc_liveness_clear(liveness, source);
	if (age_ns == 0 || message->late_rank >= op->config.nranks ||
	    message->late_rank == op->config.rank ||
	    message->late_rank == source || age_ns >= op->config.timeout_ns ||
	    age_ns > now_ns || op->state > MMC_OP_RELEASE)
		return;
	mmc_liveness_note(liveness, message->late_rank, now_ns - age_ns,
			  message->late_rank == mmc_op_awaited(op));
	liveness->told_ns = mmc_max_u64(liveness->told_ns, now_ns - age_ns);
}
