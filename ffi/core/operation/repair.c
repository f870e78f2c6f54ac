/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/repair.h"

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

void mmc_op_drain_passed(struct mmc_op *op)
{
	op->loss.passed = false;
	for (uint32_t c = 0; c < op->schedule.nchains; c++)
		mmc_watermark_drain(&op->watermark, c,
				    op->loss.chains[c].npassed);
}

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

/*
 * Asks the rank that the policy names; with a policy that reads, the fetcher does.
 */
static void pass_on(struct mmc_op *op, const struct mmc_nak *nak,
		    uint64_t now_ns, struct mmc_actions *actions)
{
	if (!op->policy->reads) {
		tell_nak(op, nak, actions);
		return;
	}
	for (uint32_t i = 0; i < nak->nruns; i++)
		mmc_fetcher_want(&op->fetcher, &op->claimed, nak->runs[i],
				 now_ns);
}

static void ask_for_lost(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_nak nak;
	uint32_t nlost = op->loss.nlost;

	while (mmc_actions_room(actions) &&
	       mmc_loss_ask(&op->loss, &op->claimed, now_ns, &nak))
		pass_on(op, &nak, now_ns, actions);
	if (!op->unicast)
		mmc_count(op->config.counters, MMC_COUNT_RX_LOST_CHUNKS,
			  op->loss.nlost - nlost);
}

void mmc_op_poll_loss(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions)
{
	if (op->config.path->backlog || now_ns < mmc_loss_deadline(&op->loss))
		return;
	ask_for_lost(op, now_ns, actions);
	mmc_op_ask_silent(op, now_ns, actions);
	if (op->loss.passed)
		mmc_op_drain_passed(op);
}

/* ---- reading ------------------------------------------------------------- */

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

/* Asks the left neighbour, or an owner, for runs by message. */
static void ask_by_message(struct mmc_op *op, uint64_t now_ns,
			   struct mmc_actions *actions)
{
	struct mmc_nak nak;

	while (mmc_actions_room(actions) &&
	       mmc_fetcher_ask(&op->fetcher, &op->claimed, now_ns, &nak))
		tell_nak(op, &nak, actions);
	while (mmc_actions_room(actions) &&
	       mmc_fetcher_ask_owner(&op->fetcher, &op->claimed, now_ns, &nak))
		tell_nak(op, &nak, actions);
}

void mmc_op_poll_fetcher(struct mmc_op *op, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_run run;

	if (now_ns < mmc_fetcher_deadline(&op->fetcher))
		return;
	while (mmc_actions_room(actions) &&
	       mmc_fetcher_data(&op->fetcher, &op->claimed, &run))
		read_run(op, MMC_ACTION_READ, run, actions);
	while (mmc_actions_room(actions) &&
	       mmc_fetcher_map(&op->fetcher, &op->claimed, now_ns, &run))
		read_run(op, MMC_ACTION_READ_MAP, run, actions);
	ask_by_message(op, now_ns, actions);
}

/* ---- serving ------------------------------------------------------------- */

/* Announces the chunks that will be multicast again, so that others need not ask. */
static void tell_confirmation(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_NCF, &message);
	if (mmc_repairer_confirm(&op->repairer, message.runs, &message.nitems))
		mmc_op_tell(op, MMC_PEER_ALL, &message, actions);
}

void mmc_op_poll_repairer(struct mmc_op *op, uint64_t now_ns,
			  struct mmc_actions *actions)
{
	struct mmc_run run;
	uint32_t peer;

	if (op->repairer.unconfirmed && mmc_actions_room(actions))
		tell_confirmation(op, actions);
	if (mmc_actions_room(actions) &&
	    mmc_repairer_next(&op->repairer, now_ns, MMC_BATCH_CHUNKS_MAX,
			      &peer, &run))
		mmc_op_send_run(op, peer, run, true, actions);
}

void mmc_op_poll_advert(struct mmc_op *op, struct mmc_actions *actions)
{
	bool first = !op->registration_ended && op->advert.generation != 0 &&
		     !op->advert.has_data;

	if (!op->advert_asked || op->registering || !mmc_actions_room(actions))
		return;
	if (first) {
		mmc_actions_add(actions, MMC_ACTION_REGISTER, op);
		op->registering = true;
		return;
	}
	op->advert_asked = false;
	mmc_op_tell_advert(op, actions);
}
