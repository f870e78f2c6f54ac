/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/tell.h"

#include "core/operation/carried.h"

/*
 * Writes which rank is late, as far as is known here. The age of the evidence is
 * rounded up, so that it grows each time that it is passed on.
 */
static void write_late(const struct mmc_op *op, struct mmc_message *message)
{
	const struct mmc_liveness *liveness = &op->liveness;

	message->late_rank = mmc_liveness_late(liveness, op->config.timeout_ns);
	message->late_age_ms = 0;
	if (message->late_rank != MMC_PEER_NONE)
		message->late_age_ms = (uint32_t)mmc_min_u64(
			(liveness->observed_ns - liveness->late_ns) /
					MMC_MS_NS +
				1,
			UINT32_MAX);
}

void mmc_op_message(const struct mmc_op *op, enum mmc_message_kind kind,
		    struct mmc_message *message)
{
	message->kind = kind;
	message->stamp_us = 0;
	message->echo_us = 0;
	message->record = op->record;
	if (!(op->record.flags & MMC_RECORD_FAILED))
		message->record.culprit = mmc_op_unentered(op);
	message->nitems = 0;
	write_late(op, message);
}

struct mmc_action *mmc_op_tell(struct mmc_op *op, uint32_t peer,
			       const struct mmc_message *message,
			       struct mmc_actions *actions)
{
	return mmc_actions_tell(actions, op, op->config.channel,
				op->config.epoch, peer, message);
}

void mmc_op_tell_record(struct mmc_op *op, uint32_t peer,
			struct mmc_actions *actions)
{
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_RECORD, &message);
	mmc_op_tell(op, peer, &message, actions);
}

void mmc_op_answer(struct mmc_op *op, const struct mmc_answer *answer,
		   uint64_t now_ns, struct mmc_actions *actions)
{
	struct mmc_run run = mmc_op_carried_to(op, answer->peer);
	uint64_t nbytes = run.count * op->layout.block_bytes;
	struct mmc_message message;
	struct mmc_action *action;

	mmc_op_message(op, MMC_MESSAGE_RECORD, &message);
	message.echo_us = answer->echo_us;
	if (answer->first >= nbytes || answer->first % MMC_PART_BYTES != 0 ||
	    (answer->echo_us != 0 && mmc_op_has_lent(op, answer->peer, now_ns)))
		run.count = 0;
	if (run.count > 0) {
		message.kind = MMC_MESSAGE_BLOCKS;
		message.part = (struct mmc_part){ .first = answer->first };
	}
	if (run.count > 0 && nbytes > MMC_PART_BYTES)
		mmc_op_lend(op, answer->peer, now_ns);
	action = mmc_op_tell(op, answer->peer, &message, actions);
	action->run = run;
	action->first = answer->first;
}

/* The stamp asks for an answer; its lowest bit is set, since 0 is no stamp. */
void mmc_op_ask_record(struct mmc_op *op, uint32_t peer, uint64_t now_ns,
		       struct mmc_actions *actions)
{
	uint32_t first = mmc_op_missing_part(op, peer);
	struct mmc_message message;

	mmc_op_message(op, first > 0 ? MMC_MESSAGE_BLOCKS : MMC_MESSAGE_RECORD,
		       &message);
	message.stamp_us = (uint32_t)(now_ns / MMC_US_NS) | 1;
	if (first > 0)
		message.part = (struct mmc_part){ .first = first };
	mmc_op_tell(op, peer, &message, actions);
}

void mmc_op_tell_advert(struct mmc_op *op, struct mmc_actions *actions)
{
	struct mmc_message message;

	mmc_op_message(op, MMC_MESSAGE_ADVERT, &message);
	message.nitems = 1;
	message.advert = op->repair.advertiser.advert;
	mmc_op_tell(op, mmc_op_right(op), &message, actions);
	mmc_count(op->config.counters, MMC_COUNT_ADVERTS, 1);
}
