/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/repair.h"
#include "core/operation/repaired.h"

#include "core/operation/parity.h"
#include "core/operation/silence.h"
#include "core/operation/tell.h"
#include "support/memory.h"

void mmc_op_send_run(struct mmc_op *op, uint32_t peer, struct mmc_run run,
		     bool repair, struct mmc_actions *actions)
{
	struct mmc_action *action =
		mmc_actions_add(actions, MMC_ACTION_SEND, op);

	action->peer = peer;
	action->run = run;
	action->repair = repair;
	op->nsending += run.count;
}

/* ---- what is lost -------------------------------------------------------- */

static void tell_nak(struct mmc_op *op, const struct mmc_nak *nak,
		     struct mmc_actions *actions)
{
	struct mmc_message message;

	mmc_op_message(op,
		       nak->direct ? MMC_MESSAGE_DIRECT_NAK : MMC_MESSAGE_NAK,
		       &message);
	message.nitems = nak->nruns;
	memcpy(message.runs, nak->runs, nak->nruns * sizeof(*nak->runs));
	mmc_op_tell(op, nak->peer, &message, actions);
}

static void ask_for_lost(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_nak nak;
	uint32_t nlost = op->repair.loss.nlost;

	while (mmc_actions_room(actions) &&
	       mmc_repair_ask(&op->repair, now_ns, &nak))
		tell_nak(op, &nak, actions);
	nlost = op->repair.loss.nlost - nlost;
	if (op->mode != MMC_OP_UNICAST)
		mmc_count(op->config.counters, MMC_COUNT_RX_LOST_CHUNKS, nlost);
	if (mmc_op_is_coded(op))
		mmc_count(op->config.counters, MMC_COUNT_FELL_BACK, nlost);
}

void mmc_op_poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	op->repair.loss.stirred = false;
	if (op->config.path->backlog ||
	    now_ns < mmc_loss_deadline(&op->repair.loss))
		return;
	ask_for_lost(op, now_ns, actions);
	mmc_op_ask_silent(op, now_ns, actions);
	if (op->repair.loss.drained)
		mmc_op_update_drained(op);
}

/* ---- fetching ----------------------------------------------------------- */

static void read_run(struct mmc_op *op, enum mmc_action_kind kind,
		     struct mmc_run run, struct mmc_actions *actions)
{
	struct mmc_action *action = mmc_actions_add(actions, kind, op);

	action->peer = mmc_op_left(op);
	action->run = run;
	mmc_count(op->config.counters,
		  kind == MMC_ACTION_READ ? MMC_COUNT_READS
					  : MMC_COUNT_MAP_READS,
		  1);
}

static void do_fetch(struct mmc_op *op, const struct mmc_fetch_step *step,
		     struct mmc_actions *actions)
{
	switch (step->kind) {
	case MMC_FETCH_NAK:
		tell_nak(op, &step->nak, actions);
		break;
	case MMC_FETCH_DATA:
		read_run(op, MMC_ACTION_READ, step->run, actions);
		break;
	case MMC_FETCH_MAP:
		read_run(op, MMC_ACTION_READ_MAP, step->run, actions);
		break;
	}
}

void mmc_op_poll_fetch(struct mmc_op *op, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	const struct mmc_repair_policy *policy = op->repair.policy;
	struct mmc_fetch_step step;

	if (now_ns < policy->deadline(&op->repair))
		return;
	while (mmc_actions_room(actions) &&
	       policy->poll(&op->repair, now_ns, &step))
		do_fetch(op, &step, actions);
}

/* ---- serving ------------------------------------------------------------- */

/* Sends an NCF, which says what will be multicast, so that others need not ask. */
static void tell_confirmation(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_NCF, &message);
	if (mmc_repairer_confirm(&op->repair.repairer, message.runs,
				 &message.nitems))
		mmc_op_tell(op, MMC_PEER_ALL, &message, actions);
}

void mmc_op_poll_repairer(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions)
{
	struct mmc_run run;
	uint32_t peer;

	if (op->repair.repairer.unconfirmed && mmc_actions_room(actions))
		tell_confirmation(op, actions);
	if (mmc_op_is_coded(op) && mmc_actions_room(actions) &&
	    mmc_op_poll_pooling(op, now_ns, actions))
		return;
	if (mmc_actions_room(actions) &&
	    mmc_repairer_next(&op->repair.repairer, now_ns,
			      MMC_BATCH_CHUNKS_MAX, &peer, &run))
		mmc_op_send_run(op, peer, run, true, actions);
}

void mmc_op_poll_advert(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_advertiser *advertiser = &op->repair.advertiser;

	if (!mmc_actions_room(actions))
		return;
	if (mmc_advertiser_take_registration(advertiser))
		mmc_actions_add(actions, MMC_ACTION_REGISTER, op);
	else if (mmc_advertiser_take_advert(advertiser))
		mmc_op_tell_advert(op, actions);
}
