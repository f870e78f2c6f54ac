/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/liveness.h"

#include "core/operation/tell.h"
#include "support/bits.h"

/*
 * A rank is inquired about after a silence of this or TIMEOUT / 4, whichever is less.
 */
#define SILENCE_NS (250 * MMC_MS_NS)

/* Inquiries are TIMEOUT / 8 apart, within these bounds. */
#define INQUIRY_NS_MIN (20 * MMC_MS_NS)
#define INQUIRY_NS_MAX MMC_S_NS

/*
 * The longest pause between questions to a silent rank: it need not answer thousands.
 */
#define ASK_NS_MAX (500 * MMC_MS_NS)

/* Keeps all ranks together from asking one rank more than 10,000 times a second. */
#define ASK_NS_PER_RANK (100 * MMC_US_NS)

/* A rank that is silent for less may only be busy, and is not reported. */
#define STILL_NS (3 * MMC_S_NS)

static uint64_t silence_ns(const struct mmc_op *op)
{
	return mmc_min_u64(SILENCE_NS, op->config.timeout_ns / 4);
}

static uint64_t inquiry_interval_ns(const struct mmc_op *op)
{
	return mmc_min_u64(mmc_max_u64(op->config.timeout_ns / 8,
				       INQUIRY_NS_MIN),
			   INQUIRY_NS_MAX);
}

static bool is_silent(const struct mmc_op *op)
{
	return op->liveness.unheard_ns >= silence_ns(op);
}

/*
 * Returns whether the ranks that hold the operation up have been silent long enough to
 * ask.
 */
static bool is_quiet(const struct mmc_op *op)
{
	if (op->state == MMC_OP_FLOW)
		return op->liveness.stalled_ns >= silence_ns(op);
	return is_silent(op);
}

/* Returns whether `peer` is waited for and does not answer. */
static bool is_missed(const struct mmc_op *op, uint32_t peer)
{
	const struct mmc_liveness *liveness = &op->liveness;

	if (op->state > MMC_OP_RELEASE)
		return false;
	if (peer == mmc_op_awaited(op))
		return is_silent(op);
	return op->state == MMC_OP_FLOW && peer == liveness->owner &&
	       liveness->unseen_ns >= silence_ns(op);
}

/* ---- patience ------------------------------------------------------------ */

/* A rank that entered just in time is asked once more before it is named. */
static uint64_t entry_limit_ns(const struct mmc_op *op)
{
	return op->config.entry_timeout_ns + 2 * MMC_BACKOFF_MAX_NS;
}

/* A rank that never entered is named by the ranks that await it directly. */
static bool entry_is_overdue(const struct mmc_op *op)
{
	return op->state == MMC_OP_ENTRY && op->config.entry_timeout_ns != 0 &&
	       op->liveness.entering_ns >= entry_limit_ns(op) &&
	       !mmc_barrier_passed(&op->entry) &&
	       !mmc_barrier_awaited_joined(&op->entry);
}

/*
 * Returns whether an answer can be expected at all. Where ranks answer in their own
 * calls only, a rank that computes before it enters, or after it is done, does not
 * answer.
 */
static bool expects_answer(const struct mmc_op *op)
{
	return !op->config.unattended || op->state == MMC_OP_FLOW;
}

/*
 * Returns the rank that has been late for LATE_TIMEOUT, or MMC_PEER_ALL. While data
 * flows any late rank holds all others up; before and after that only the rank awaited
 * here does.
 */
static uint32_t overdue_rank(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;
	uint64_t waited_ns = op->state == MMC_OP_FLOW ? liveness->stalled_ns
						      : liveness->unheard_ns;

	if (op->config.late_timeout_ns == 0 || !expects_answer(op) ||
	    waited_ns < op->config.late_timeout_ns)
		return MMC_PEER_ALL;
	return mmc_liveness_late(liveness, op->config.timeout_ns);
}

/*
 * Returns the rank to blame when nothing new arrives: the owner of the missing chunks
 * if it has been silent for TIMEOUT, since the awaited rank may itself be waiting for
 * that owner; otherwise the awaited rank.
 */
static uint32_t idle_culprit(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;

	if (liveness->owner != MMC_PEER_ALL &&
	    liveness->unseen_ns >= op->config.timeout_ns)
		return liveness->owner;
	return mmc_op_awaited(op);
}

/*
 * Fails the operation when a wait is too long. Progress is waited for a little longer
 * than an answer: the awaited rank may itself await the rank that gives no answer, and
 * will say so.
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
	else if (overdue != MMC_PEER_ALL)
		mmc_op_fail(op, MMC_ELATE, overdue, true);
	else if (op->state == MMC_OP_FLOW &&
		 liveness->idle_ns >= limit_ns + limit_ns / 4)
		mmc_op_fail(op, MMC_ENOPROGRESS, idle_culprit(op), true);
}

/* ---- inquiries ----------------------------------------------------------- */

/*
 * Returns the owner of missing data that another rank, such as a neighbour, is awaited
 * for, or MMC_PEER_ALL. Only the owner may know what it has sent.
 */
static uint32_t absent_owner(const struct mmc_op *op)
{
	const struct mmc_bitmap *present = &op->present;
	struct mmc_run missing;
	uint32_t owner;

	if (op->state != MMC_OP_FLOW)
		return MMC_PEER_ALL;
	missing = mmc_bitmap_next_clear(&present, 1, 0, op->layout.nchunks);
	if (missing.count == 0)
		return MMC_PEER_ALL;
	owner = mmc_layout_owner(&op->layout, missing.first);
	return owner == mmc_op_awaited(op) ? MMC_PEER_ALL : owner;
}

/* Asks the owner itself, and the transport about an owner that stays silent. */
static void inquire_owner(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;
	uint32_t owner = absent_owner(op);

	if (owner != liveness->owner) {
		liveness->owner = owner;
		liveness->unseen_ns = 0;
	}
	if (owner == MMC_PEER_ALL)
		return;
	if (mmc_actions_room(actions))
		mmc_op_ask_record(op, owner, now_ns, actions);
	if (mmc_actions_room(actions) && liveness->unseen_ns >= silence_ns(op))
		mmc_actions_add(actions, MMC_ACTION_INQUIRE, op)->peer = owner;
}

static void inquire(struct mmc_op *op, uint64_t now_ns,
		    struct mmc_actions *actions)
{
	uint32_t peer = mmc_op_awaited(op);

	op->liveness.inquire_ns = now_ns + inquiry_interval_ns(op);
	if (peer != MMC_PEER_ALL && is_silent(op))
		mmc_actions_add(actions, MMC_ACTION_INQUIRE, op)->peer = peer;
	inquire_owner(op, now_ns, actions);
}

/*
 * Tells all ranks of the late one by multicast, unless another rank just has: some
 * ranks await it only through others.
 */
static void tell_witnessed(struct mmc_op *op, uint64_t now_ns,
			   struct mmc_actions *actions)
{
	struct mmc_liveness *liveness = &op->liveness;

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
	mmc_liveness_look(liveness, now_ns);
	if (op->renewed) {
		op->renewed = false;
		mmc_liveness_renew(liveness);
	}
	check_patience(op);
	if (op->state > MMC_OP_RELEASE || !op->config.inquires)
		return;
	if (is_quiet(op) && now_ns >= liveness->inquire_ns &&
	    mmc_actions_room(actions))
		inquire(op, now_ns, actions);
	if (liveness->witnessed && mmc_actions_room(actions))
		tell_witnessed(op, now_ns, actions);
}

uint64_t mmc_op_liveness_deadline(const struct mmc_op *op)
{
	const struct mmc_liveness *liveness = &op->liveness;
	uint64_t at_ns = MMC_NEVER_NS;

	if (expects_answer(op))
		at_ns = mmc_look_deadline(liveness->looked_ns,
					  liveness->unproven_ns,
					  op->config.timeout_ns);
	if (op->config.inquires)
		at_ns = mmc_min_u64(at_ns, is_quiet(op)
						   ? liveness->inquire_ns
						   : liveness->looked_ns +
							     silence_ns(op));
	if (op->state == MMC_OP_ENTRY && op->config.entry_timeout_ns != 0)
		at_ns = mmc_min_u64(at_ns,
				    mmc_look_deadline(liveness->looked_ns,
						      liveness->entering_ns,
						      entry_limit_ns(op)));
	return at_ns;
}

bool mmc_op_ask_due(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t pause_ns = 0;

	if (!mmc_backoff_due(&op->asking, now_ns))
		return false;
	if (op->state <= MMC_OP_RELEASE)
		pause_ns =
			mmc_min_u64(op->liveness.unheard_ns / 16, ASK_NS_MAX);
	/* While data flows all ranks may await the same one. */
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
	mmc_liveness_note(liveness, peer, liveness->looked_ns,
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
	       op->liveness.unheard_ns >= STILL_NS &&
	       mmc_op_awaited(op) != MMC_PEER_ALL &&
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
