/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/liveness.h"

#include "core/operation/due.h"
#include "core/operation/tell.h"
#include "support/bits.h"

/*
 * An *inquiry* asks the transport whether the process of a rank still exists. The
 * operation makes an inquiry once the rank has been silent for SILENCE_NS or a quarter
 * of TIMEOUT, whichever is less.
 */
#define SILENCE_NS (250 * MMC_MS_NS)

/* Inquiries are an eighth of TIMEOUT apart, within these bounds. */
#define INQUIRY_NS_MIN (20 * MMC_MS_NS)
#define INQUIRY_NS_MAX MMC_S_NS

/*
 * The longer a rank is silent, the longer are the pauses between questions to that
 * rank, up to this limit. Without pauses, a stopped rank would find thousands of
 * questions when it resumes.
 */
#define ASK_NS_MAX (500 * MMC_MS_NS)

/*
 * While data flows, all ranks may ask the same rank. So each of them pauses for at
 * least ASK_NS_PER_RANK times the number of ranks, and the rank is asked at most 10,000
 * times a second in all. But no rank has to pause for longer than an eighth of TIMEOUT.
 */
#define ASK_NS_PER_RANK (100 * MMC_US_NS)

/*
 * How long a rank must have been silent before the user is told that it is late. After
 * a shorter silence, the rank may only be busy.
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
 * Returns whether an inquiry is needed. While data flows, it is needed if the operation
 * has not advanced for silence_ns(). In other states, it is needed if the awaited rank
 * is silent.
 */
static bool needs_inquiry(const struct mmc_op *op)
{
	if (op->state == MMC_OP_FLOW)
		return op->liveness.stalled_ns >= silence_ns(op);
	return is_silent(op);
}

/*
 * Returns whether the operation depends on `peer`, and `peer` is silent. It depends on
 * the awaited rank and, while data flows, also on `owner`, the owner of missing chunks.
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
 * Returns how long the awaited rank may take to enter. This is ENTRY_TIMEOUT plus the
 * time for one more question, since the rank may have entered at the last moment.
 */
static uint64_t entry_limit_ns(const struct mmc_op *op)
{
	return op->config.entry_timeout_ns + 2 * MMC_BACKOFF_MAX_NS;
}

/*
 * Returns whether the awaited rank has still not entered after entry_limit_ns(). A rank
 * enters an operation by joining its entry barrier.
 */
static bool entry_is_overdue(const struct mmc_op *op)
{
	return op->state == MMC_OP_ENTRY && op->config.entry_timeout_ns != 0 &&
	       op->liveness.since_start_ns >= entry_limit_ns(op) &&
	       !mmc_barrier_passed(&op->entry) &&
	       !mmc_barrier_awaited_has_joined(&op->entry);
}

/*
 * Returns whether the awaited rank must answer. Unattended ranks answer only inside
 * calls of the library. So they must answer while data flows, but not before they have
 * entered or once they are done: they may then be computing.
 */
static bool expects_answer(const struct mmc_op *op)
{
	return !op->config.unattended || op->state == MMC_OP_FLOW;
}

/*
 * Returns a late rank for which the operation has waited for LATE_TIMEOUT, or
 * MMC_PEER_NONE. While data flows, the wait begins when the operation last advanced,
 * since any late rank holds up all others. In other states, the wait begins when the
 * awaited rank was last heard.
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
 * Returns the rank to blame if the operation does not advance. This is the awaited rank,
 * unless the owner of missing chunks has been silent for TIMEOUT. In that case the
 * awaited rank may itself wait for the owner, which is to blame.
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
 * Fails the operation if a wait has reached its limit. One limit is TIMEOUT without a
 * proof that the awaited rank exists. Another limit holds while data flows: 1.25 times
 * TIMEOUT in which the operation has not advanced and no late rank explains why.
 *
 * The second limit is longer than the first because a rank may await a living rank, and
 * the living rank may await a dead one. The living rank then fails first, and tells the
 * rank that awaits it which rank is dead.
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
 * Returns the owner of the first missing chunk if this rank awaits the chunk from
 * another rank, such as a neighbour. Otherwise, or if no chunk is missing, returns
 * MMC_PEER_NONE. Only the owner may know which chunks it has sent, so it is asked, too.
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
 * Asks the owner of missing chunks for its record, unless the owner is the awaited rank.
 * If the owner is silent, also makes an inquiry about it.
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
 * Makes an inquiry about the awaited rank if that rank is silent. Also asks the owner of
 * missing chunks, and if the owner is silent, makes an inquiry about it, too.
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
 * Reports to all ranks which rank is late, unless this rank or another one has recently
 * reported a late rank. All ranks must know of it: a rank that does not await the late
 * rank may still be held up by a rank that does.
 */
static void tell_of_late_rank(struct mmc_op *op, uint64_t now_ns,
			      struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;

	/*
	 * A report is now sent, or is not needed. If the rank stays late, the answer to
	 * the next inquiry will set `witnessed` again.
	 */
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
	if (op->advanced_ns >= liveness->observed_ns) {
		mmc_liveness_observe(liveness, op->advanced_ns);
		mmc_liveness_reset(liveness);
	}
	mmc_liveness_observe(liveness, now_ns);
	check_patience(op);
	if (op->state > MMC_OP_RELEASE || !op->config.inquires)
		return;
	if (needs_inquiry(op) && now_ns >= liveness->inquire_ns &&
	    mmc_actions_room(actions))
		inquire(op, now_ns, actions);
	/* A rank reports only a late rank that its own transport has found. */
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
	/* While data flows, all ranks may await, and therefore ask, the same rank. */
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
	mmc_op_wake(op);
	mmc_liveness_note_late(liveness, peer, liveness->observed_ns,
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

	mmc_liveness_hear_rank(liveness, source);
	if (age_ns == 0 || message->late_rank >= op->config.nranks ||
	    message->late_rank == op->config.rank ||
	    message->late_rank == source || age_ns >= op->config.timeout_ns ||
	    age_ns > now_ns || op->state > MMC_OP_RELEASE)
		return;
	mmc_liveness_note_late(liveness, message->late_rank, now_ns - age_ns,
			       message->late_rank == mmc_op_awaited(op));
	liveness->told_ns = mmc_max_u64(liveness->told_ns, now_ns - age_ns);
}
