/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/epochs.h"

#include "core/operation/carried.h"
#include "core/operation/coalescing.h"
#include "core/operation/due.h"
#include "core/operation/early.h"
#include "core/operation/tell.h"
#include "support/assert.h"
#include "support/bits.h"

size_t mmc_epochs_bytes(uint32_t nranks)
{
	return mmc_answers_bytes(nranks);
}

void mmc_epochs_init(struct mmc_epochs *epochs, void *memory, uint64_t channel,
		     uint32_t rank, uint32_t nranks,
		     struct mmc_counters *counters)
{
	*epochs = (struct mmc_epochs){
		.channel = channel & MMC_CHANNEL_MASK,
		.rank = rank,
		.nranks = nranks,
		.counters = counters,
	};
	mmc_path_init(&epochs->path);
	mmc_answers_init(&epochs->answers, memory, nranks);
}

/* ---- starting ----------------------------------------------------------- */

bool mmc_epochs_ready(const struct mmc_epochs *epochs)
{
	return epochs->poison.error == MMC_OK &&
	       epochs->open[mmc_epochs_slot(epochs->last + 1)] == NULL &&
	       epochs->last - epochs->done < MMC_EPOCHS_ACTIVE_MAX;
}

struct mmc_op *mmc_epochs_start(struct mmc_epochs *epochs, void *memory,
				const struct mmc_op_config *config,
				uint64_t now_ns)
{
	uint32_t epoch = epochs->last + 1;
	struct mmc_op_config full = *config;
	struct mmc_op *op;

	MMC_ASSERT(mmc_epochs_ready(epochs));
	full.channel = epochs->channel;
	full.epoch = epoch;
	full.rank = epochs->rank;
	full.nranks = epochs->nranks;
	full.lag_epochs = epoch - epochs->done;
	full.path = &epochs->path;
	full.counters = epochs->counters;
	mmc_carried_bare(&full, &epochs->lead);
	op = mmc_op_init(memory, &full, now_ns);
	epochs->last = epoch;
	epochs->open[mmc_epochs_slot(epoch)] = op;
	epochs->nopen++;
	epochs->settled[mmc_epochs_slot(epoch)] = false;
	mmc_count(epochs->counters, MMC_COUNT_EPOCHS, 1);
	mmc_epochs_hand_over(epochs, op, now_ns);
	return op;
}

/* ---- messages ----------------------------------------------------------- */

void mmc_epochs_on_message(struct mmc_epochs *epochs, uint32_t source,
			   uint32_t epoch, const struct mmc_message *message,
			   uint64_t now_ns)
{
	const struct mmc_record *record = &message->record;
	struct mmc_op *op = mmc_epochs_find(epochs, epoch);

	if (message->echo_us != 0)
		mmc_path_round_trip(&epochs->path,
				    ((uint32_t)(now_ns / MMC_US_NS) -
				     (message->echo_us & ~1U)) *
					    MMC_US_NS);
	if (message->stamp_us != 0)
		mmc_answers_owe(&epochs->answers,
				(struct mmc_answer){
					.peer = source,
					.epoch = epoch,
					.echo_us = message->stamp_us,
					.first = mmc_message_first(message),
				});
	if (record->flags & MMC_RECORD_FAILED)
		mmc_epochs_poison(
			epochs,
			(struct mmc_poison){
				.error = (enum mmc_error)record->failure,
				.epoch = epoch,
				.culprit = record->culprit,
			},
			false);
	if (op != NULL)
		mmc_op_on_message(op, source, message, now_ns);
	else if (mmc_epochs_is_next(epochs, epoch) &&
		 (record->flags & MMC_RECORD_ENTERED))
		mmc_epochs_park(epochs, source, epoch, message);
}

void mmc_epochs_poison(struct mmc_epochs *epochs, struct mmc_poison poison,
		       bool tell)
{
	if (epochs->poison.error != MMC_OK)
		return;
	epochs->poison = poison;
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (epochs->open[i] != NULL)
			mmc_op_fail(epochs->open[i], poison.error,
				    poison.culprit, tell);
}

void mmc_epochs_leave(struct mmc_epochs *epochs, uint32_t final)
{
	epochs->left = true;
	epochs->final = final;
}

void mmc_epochs_on_alive(struct mmc_epochs *epochs, uint32_t peer)
{
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (epochs->open[i] != NULL)
			mmc_op_on_alive(epochs->open[i], peer);
}

void mmc_epochs_on_gone(struct mmc_epochs *epochs, uint32_t peer)
{
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (epochs->open[i] != NULL)
			mmc_op_on_gone(epochs->open[i], peer);
}

/* ---- polling ------------------------------------------------------------ */

/*
 * Returns the record of this rank in an epoch that has no operation here. After a
 * failure the epoch may have ended here before all ranks were done, so others are told
 * of the failure, lest they wait for more.
 */
static struct mmc_record bare_record(const struct mmc_epochs *epochs,
				     uint32_t epoch)
{
	const struct mmc_poison *poison = &epochs->poison;
	struct mmc_record record = { .culprit = MMC_PEER_NONE };

	if (poison->error != MMC_OK) {
		record.flags = MMC_RECORD_FAILED;
		record.failure = (uint8_t)poison->error;
		record.culprit = poison->culprit;
		if (epoch == poison->epoch &&
		    epochs->poison_terms.signature_max != 0) {
			/* The terms show what the ranks disagree about. */
			record.flags |= MMC_RECORD_ENTERED;
			record.terms = epochs->poison_terms;
		}
	} else if (!mmc_epoch_after(epoch, epochs->last)) {
		record.flags = MMC_RECORD_DONE | MMC_RECORD_CLOSED;
		record.release_rounds = MMC_ROUNDS_MAX;
		record.sent_chunks = UINT32_MAX;
	} else if (epochs->left && mmc_epoch_after(epoch, epochs->final)) {
		record.flags = MMC_RECORD_LEFT;
	}
	return record;
}

static void poll_answers(struct mmc_epochs *epochs, uint64_t now_ns,
			 struct mmc_actions *actions)
{
	struct mmc_message message;
	struct mmc_answer answer;

	message.kind = MMC_MESSAGE_RECORD;
	message.stamp_us = 0;
	message.late_rank = MMC_PEER_NONE;
	message.late_age_ms = 0;
	message.nitems = 0;
	while (mmc_actions_room(actions) &&
	       mmc_answers_next(&epochs->answers, &answer)) {
		struct mmc_op *op = mmc_epochs_find(epochs, answer.epoch);

		if (op != NULL) {
			mmc_op_answer(op, &answer, now_ns, actions);
			continue;
		}
		message.record = bare_record(epochs, answer.epoch);
		message.echo_us = answer.echo_us;
		mmc_actions_tell(actions, NULL, epochs->channel, answer.epoch,
				 answer.peer, &message);
	}
}

/*
 * Notes since when multicast is not used. It counts as used again after two operations
 * in a row, since the first may be a try that fails.
 */
static void note_way(struct mmc_epochs *epochs, const struct mmc_op *op)
{
	uint32_t epoch = epochs->unicast_epoch;
	bool unicast = op->mode == MMC_OP_UNICAST;

	if (op->mode == MMC_OP_CARRIED)
		return;
	epochs->nmulticast = unicast ? 0 : epochs->nmulticast + 1;
	if (unicast && epoch == 0) {
		epochs->deaf = op->record.terms.deaf;
		epoch = op->config.epoch;
	} else if (epochs->nmulticast >= 2) {
		epoch = 0;
	}
	/* Another thread that reads this epoch must find the `deaf` of it. */
	__atomic_store_n(&epochs->unicast_epoch, epoch, __ATOMIC_RELEASE);
}

/*
 * Once when `op` has passed its entry barrier, learns from it whether multicast is
 * used, and which older operations are done on all ranks.
 */
static void settle(struct mmc_epochs *epochs, struct mmc_op *op)
{
	uint32_t epoch = op->config.epoch;
	uint32_t lag = op->record.terms.lag_epochs;

	if (!mmc_op_has_begun(op) || epochs->settled[mmc_epochs_slot(epoch)])
		return;
	epochs->settled[mmc_epochs_slot(epoch)] = true;
	if (mmc_op_is_bare(op))
		return; /* not all have entered */
	note_way(epochs, op);
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++) {
		struct mmc_op *other = epochs->open[i];

		if (other != NULL && epoch - other->config.epoch >= lag &&
		    mmc_epoch_after(epoch, other->config.epoch))
			mmc_op_all_done(other);
	}
}

/*
 * Poisons the stream if a Bcast without a whole barrier has ended here before it was
 * heard that another rank has started something else.
 */
static void check_agreed(struct mmc_epochs *epochs, const struct mmc_op *op)
{
	if (!mmc_op_is_bare(op) || !mmc_op_has_begun(op) ||
	    mmc_op_is_agreed(op) || epochs->poison.error != MMC_OK)
		return;
	mmc_epochs_poison(epochs,
			  (struct mmc_poison){
				  .error = MMC_EMISMATCH,
				  .epoch = op->config.epoch,
				  .culprit = MMC_PEER_NONE,
			  },
			  true);
	epochs->poison_terms = op->record.terms;
}

/* Makes the failure of an operation, if it has failed, that of the stream. */
static void spread_failure(struct mmc_epochs *epochs, const struct mmc_op *op)
{
	check_agreed(epochs, op);
	if (!(op->record.flags & MMC_RECORD_FAILED))
		return;
	mmc_epochs_poison(epochs,
			  (struct mmc_poison){
				  .error = (enum mmc_error)op->record.failure,
				  .epoch = op->config.epoch,
				  .culprit = op->record.culprit,
			  },
			  false);
	if (op->config.epoch == epochs->poison.epoch)
		epochs->poison_terms = op->record.terms;
}

/* Moves `done` behind the operations that have ended for the user. */
static void advance_done(struct mmc_epochs *epochs)
{
	while (epochs->done != epochs->last) {
		struct mmc_op *op = mmc_epochs_find(epochs, epochs->done + 1);

		if (op != NULL && !mmc_op_is_reported(op))
			break;
		epochs->done++;
	}
}

/*
 * Polls an operation as far as something is due. Returns false if at most its turn has
 * gone on.
 */
static bool poll_op(struct mmc_epochs *epochs, struct mmc_op *op,
		    uint64_t now_ns, struct mmc_actions *actions)
{
	if (now_ns < op->due_ns && op->sends &&
	    mmc_op_poll_turn(op, now_ns, actions))
		return false;
	if (now_ns < op->due_ns)
		return false;
	mmc_op_poll(op, now_ns, actions);
	settle(epochs, op);
	spread_failure(epochs, op);
	if (op->holding == MMC_OP_NOTHING) {
		epochs->open[mmc_epochs_slot(op->config.epoch)] = NULL;
		epochs->nopen--;
	}
	return true;
}

void mmc_epochs_poll(struct mmc_epochs *epochs, uint64_t now_ns,
		     struct mmc_actions *actions)
{
	uint32_t nopen = epochs->nopen;
	bool polled = false;

	/*
	 * The newest goes first: its barrier may close older ones, which then go, too.
	 */
	for (uint32_t epoch = epochs->last; nopen > 0; epoch--) {
		struct mmc_op *op = epochs->open[mmc_epochs_slot(epoch)];

		if (op == NULL)
			continue;
		nopen--;
		polled |= poll_op(epochs, op, now_ns, actions);
	}
	if (epochs->answers.count > 0)
		poll_answers(epochs, now_ns, actions);
	if (polled)
		advance_done(epochs);
}

uint64_t mmc_epochs_deadline(const struct mmc_epochs *epochs)
{
	uint64_t at_ns = epochs->answers.count > 0 ? 0 : MMC_NEVER_NS;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (epochs->open[i] != NULL)
			at_ns = mmc_min_u64(at_ns,
					    mmc_op_due_ns(epochs->open[i]));
	return at_ns;
}

uint64_t mmc_epochs_coalescing_ns(const struct mmc_epochs *epochs)
{
	uint64_t time_ns = MMC_NEVER_NS;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (epochs->open[i] != NULL)
			time_ns = mmc_min_u64(
				time_ns, mmc_op_coalescing_ns(epochs->open[i]));
	return time_ns;
}
