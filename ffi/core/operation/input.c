/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of op.h that takes events: what the network and the engine bring,
 * but for chunks (chunks.c).
 */
#include "core/operation/carried.h"
#include "core/operation/due.h"
#include "core/operation/liveness.h"
#include "core/operation/silence.h"
#include "core/repair/silence.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

void mmc_op_on_sent(struct mmc_op *op, uint32_t nchunks)
{
	MMC_ASSERT(nchunks <= op->nsending);
	op->nsending -= nchunks;
	/* The operation may have waited for that alone. */
	if (op->nsending == 0 && !op->sends)
		mmc_op_wake(op);
}

/* ---- reads --------------------------------------------------------------- */

void mmc_op_on_map(struct mmc_op *op, struct mmc_run words,
		   const uint8_t *bytes, uint64_t now_ns)
{
	mmc_op_wake(op);
	if (!mmc_fetcher_mapped(&op->repair.fetcher, words, bytes, now_ns))
		mmc_count(op->config.counters, MMC_COUNT_FAILED_READS, 1);
}

bool mmc_op_on_read(struct mmc_op *op, struct mmc_run run, uint64_t generation)
{
	mmc_op_wake(op);
	if (!mmc_fetcher_read_ended(&op->repair.fetcher, run, generation)) {
		mmc_count(op->config.counters, MMC_COUNT_FAILED_READS, 1);
		return false;
	}
	return op->state == MMC_OP_FLOW;
}

void mmc_op_registered(struct mmc_op *op, const struct mmc_readable *readable)
{
	const uint8_t *map = (const uint8_t *)op->present.words;
	struct mmc_advert advert = { 0 };

	mmc_op_wake(op);
	if (readable != NULL)
		advert = (struct mmc_advert){
			.generation = op->config.generation,
			.has_data = true,
			.map_address = readable->state_address +
				       (uint64_t)(map - (const uint8_t *)op),
			.data_address = readable->data_address,
			.map_key = readable->state_key,
			.data_key = readable->data_key,
		};
	mmc_advertiser_registered(&op->repair.advertiser, &advert);
}

/* ---- messages ----------------------------------------------------------- */

/*
 * Returns whether this rank is about to give its buffers back, and takes no more NAKs.
 */
static bool is_leaving(const struct mmc_op *op)
{
	return op->repair.policy->release == MMC_RELEASE_RIGHT &&
	       op->state >= MMC_OP_RELEASE && op->right_done;
}

/* Takes a NAK, of whose chunks this rank may serve some. */
static void on_nak(struct mmc_op *op, const struct mmc_nak *nak,
		   uint64_t now_ns)
{
	if (!is_leaving(op) &&
	    !mmc_repair_on_nak(&op->repair, nak, op->turn.next, now_ns))
		mmc_count(op->config.counters, MMC_COUNT_RX_UNKEPT_REQUESTS, 1);
}

static void read_nak(uint32_t source, const struct mmc_message *message,
		     struct mmc_nak *nak)
{
	nak->peer = source;
	nak->direct = message->kind == MMC_MESSAGE_DIRECT_NAK;
	nak->nruns = message->nitems;
	memcpy(nak->runs, message->runs,
	       message->nitems * sizeof(*message->runs));
}

/* Keeps a NAK of a rank that knows before this one that all have entered. */
static void keep_nak(struct mmc_op *op, uint32_t source,
		     const struct mmc_message *message)
{
	if (op->nearly == MMC_OP_EARLY_MAX) {
		mmc_count(op->config.counters, MMC_COUNT_RX_UNKEPT_REQUESTS, 1);
		return;
	}
	read_nak(source, message, &op->early[op->nearly++]);
}

void mmc_op_serve_early(struct mmc_op *op, uint64_t now_ns)
{
	for (uint32_t i = 0; i < op->nearly; i++)
		on_nak(op, &op->early[i], now_ns);
	op->nearly = 0;
}

/* Takes an NCF: chunks that will be multicast need not be asked for. */
static void on_confirmation(struct mmc_op *op,
			    const struct mmc_message *message, uint64_t now_ns)
{
	for (uint32_t i = 0; i < message->nitems; i++) {
		struct mmc_run run = message->runs[i];
		uint32_t nlost = op->repair.loss.nlost;

		if (run.first >= op->layout.nchunks ||
		    run.count > op->layout.nchunks - run.first)
			continue;
		mmc_loss_suppress(&op->repair.loss, &op->claimed, run, now_ns);
		mmc_count(op->config.counters, MMC_COUNT_RX_LOST_CHUNKS,
			  op->repair.loss.nlost - nlost);
	}
}

/* Takes what matters in a message once all ranks have entered. */
static void on_flow_message(struct mmc_op *op, uint32_t source,
			    const struct mmc_message *message, uint64_t now_ns)
{
	struct mmc_nak nak;
	bool vain = mmc_silence_tell(&op->repair.loss, source,
				     message->record.sent_chunks,
				     message->kind == MMC_MESSAGE_RECORD,
				     now_ns);

	mmc_turn_hear(&op->turn, source, now_ns);
	mmc_op_hear_sent(op, source, message, now_ns);
	/*
	 * Where control is not lost, the sender only lacked a processor: wait longer.
	 */
	if (vain && op->config.control_is_reliable)
		op->config.path->nlate++;
	switch (message->kind) {
	case MMC_MESSAGE_NAK:
	case MMC_MESSAGE_DIRECT_NAK:
		read_nak(source, message, &nak);
		on_nak(op, &nak, now_ns);
		break;
	case MMC_MESSAGE_NCF:
		on_confirmation(op, message, now_ns);
		break;
	case MMC_MESSAGE_REPORT:
		mmc_watermark_report(&op->watermark, source, message->positions,
				     message->nitems);
		break;
	case MMC_MESSAGE_WATERMARK:
		mmc_watermark_settle(&op->watermark, source, message->positions,
				     message->nitems);
		break;
	default:
		break;
	}
}

/* Takes the rounds and terms of a record; returns whether a barrier has advanced. */
static bool hear_record(struct mmc_op *op, uint32_t source,
			const struct mmc_record *record)
{
	bool moved = false;

	if (record->flags & MMC_RECORD_ENTERED) {
		if (!mmc_op_has_begun(op) || mmc_op_is_bare(op))
			mmc_terms_merge(&op->record.terms, &record->terms);
		/* Ranks that have started something else bring no blocks. */
		if (!mmc_op_is_agreed(op))
			moved |= mmc_barrier_bring_all(&op->entry);
		moved |= mmc_barrier_hear(&op->entry, source,
					  record->entry_rounds);
		op->record.entry_rounds = op->entry.rounds;
	}
	if (record->flags & MMC_RECORD_DONE) {
		moved |= mmc_barrier_hear(&op->release, source,
					  record->release_rounds);
		op->record.release_rounds = op->release.rounds;
		op->right_done |= source == mmc_op_right(op);
	}
	return moved;
}

/* Takes what the policy must know of a message: an advert, or that its rank is done. */
static void hear_repair(struct mmc_op *op, uint32_t source,
			const struct mmc_message *message, uint64_t now_ns)
{
	struct mmc_repair_state *repair = &op->repair;

	if (message->kind == MMC_MESSAGE_ADVERT)
		repair->policy->on_advert(repair, source, &message->advert,
					  now_ns);
	if (message->record.flags & MMC_RECORD_DONE)
		repair->policy->on_peer_done(repair, source, now_ns);
}

/*
 * Returns the rank that a record of the awaited one names, if it is another than this.
 */
static uint32_t late_of(const struct mmc_op *op,
			const struct mmc_record *record)
{
	bool known = record->culprit < op->config.nranks &&
		     record->culprit != op->config.rank;

	return known ? record->culprit : MMC_PEER_NONE;
}

void mmc_op_on_message(struct mmc_op *op, uint32_t source,
		       const struct mmc_message *message, uint64_t now_ns)
{
	const struct mmc_record *record = &message->record;
	bool awaited = source == mmc_op_awaited(op);

	MMC_ASSERT(source < op->config.nranks);
	mmc_op_wake(op);
	if (record->flags & MMC_RECORD_FAILED) {
		if (!mmc_op_has_begun(op) &&
		    (record->flags & MMC_RECORD_ENTERED))
			mmc_terms_merge(&op->record.terms, &record->terms);
		mmc_op_fail(op, (enum mmc_error)record->failure,
			    record->culprit, false);
		return;
	}
	if (record->flags & MMC_RECORD_LEFT) {
		if (op->state == MMC_OP_ENTRY)
			mmc_op_fail(op, MMC_ELEFT, source, true);
		return;
	}
	if (awaited) {
		mmc_liveness_hear_awaited(&op->liveness);
		op->unentered = late_of(op, record);
	}
	mmc_op_hear_late(op, source, message, now_ns);
	hear_repair(op, source, message, now_ns);
	if (hear_record(op, source, record) && op->state <= MMC_OP_RELEASE) {
		mmc_op_mark_advanced(op, now_ns);
		mmc_op_ask_soon(op, now_ns);
	}
	/*
	 * A rank that asks may wait for what this one has yet to hear, so this one
	 * asks, too.
	 */
	if (op->state == MMC_OP_HELPING && message->stamp_us != 0 &&
	    op->asking.at_ns == MMC_NEVER_NS)
		mmc_op_ask_soon(op, now_ns);
	if (mmc_op_has_begun(op) && message->echo_us != 0)
		mmc_repair_stretch(&op->repair,
				   mmc_path_long_trip_ns(op->config.path));
	if (mmc_op_has_begun(op))
		on_flow_message(op, source, message, now_ns);
	else if (message->kind == MMC_MESSAGE_NAK ||
		 message->kind == MMC_MESSAGE_DIRECT_NAK)
		keep_nak(op, source, message);
}
