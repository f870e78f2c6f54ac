/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the part of loss.h that asks for lost chunks: when, whom, and for how
 * many.
 */
#include "core/repair/loss.h"
#include "support/bits.h"

/* The least budget: the answers to fewer chunks would not even fill two batches. */
#define BUDGET_CHUNKS_MIN 32

/* While chains still send, the budget of requests is divided by this. */
#define BUDGET_PART 4

/* Even on a slow link, no answer takes longer than this. */
#define QUEUED_MAX_NS (100 * MMC_MS_NS)

/*
 * After so many requests it is clear that answers by multicast do not arrive at all;
 * where other chunks do arrive, it takes more to tell that those of one sender do not.
 */
#define NAKS_BEFORE_DIRECT 2
#define NAKS_BEFORE_DIRECT_REACHED 6

bool mmc_loss_asks_directly(const struct mmc_loss *loss)
{
	uint32_t nnaks = loss->reached ? NAKS_BEFORE_DIRECT_REACHED
				       : NAKS_BEFORE_DIRECT;

	/*
	 * For two intervals in a row, since a chunk may be asked for only in every
	 * second one.
	 */
	return loss->nasked >= nnaks && (loss->nasked - nnaks) % 4 < 2;
}

/* ---- answers --------------------------------------------------------------- */

/* Smooths in how long an answer took (gain 1/8, as in RFC 6298). */
static void time_answer(struct mmc_loss *loss, uint64_t time_ns)
{
	loss->answer_ns = loss->answer_ns == 0
				  ? time_ns
				  : (7 * loss->answer_ns + time_ns) / 8;
	loss->timed_chunk = UINT32_MAX;
}

/*
 * Times the answer to a request for `run`, unless one of this interval is timed
 * already.
 */
static void time_request(struct mmc_loss *loss, struct mmc_run run,
			 uint64_t now_ns)
{
	if (loss->timed_chunk != UINT32_MAX &&
	    mmc_bitmap_test(&loss->asked, loss->timed_chunk))
		return;
	loss->timed_chunk = run.first + run.count - 1;
	loss->timed_ns = now_ns;
}

/* Returns the first retry interval: as usual or, if longer, what answers have taken. */
static uint64_t retry_ns(const struct mmc_loss *loss, uint64_t now_ns)
{
	return mmc_max_u64(mmc_loss_retry_ns(loss, now_ns),
			   mmc_min_u64(loss->answer_ns + loss->answer_ns / 4,
				       MMC_BACKOFF_MAX_NS));
}

/*
 * Returns how many chunks may be asked for and not yet here. While chains still send,
 * their windows fill the queues, so there is room for only a part of the answers.
 */
static uint32_t budget_chunks(const struct mmc_loss *loss)
{
	uint32_t part = loss->nopen > 0 ? BUDGET_PART : 1;
	uint32_t most =
		mmc_max_u32(BUDGET_CHUNKS_MIN, loss->budget_chunks / part);

	if (!loss->policy->answers_queue || !mmc_loss_asks_directly(loss))
		return most;
	return mmc_min_u32(most, loss->direct_chunks);
}

void mmc_loss_arrived(struct mmc_loss *loss, uint32_t chunk, uint64_t now_ns)
{
	if (!mmc_bitmap_test(&loss->asked, chunk) &&
	    !mmc_bitmap_test(&loss->before, chunk))
		return;
	if (chunk == loss->timed_chunk)
		time_answer(loss, now_ns - loss->timed_ns);
	if (loss->waited_chunks > 0)
		loss->waited_chunks--;
	if (loss->held && loss->waited_chunks <= budget_chunks(loss) / 2) {
		loss->held = false;
		loss->ask_ns = now_ns;
		loss->stirred = true;
	}
}

/* ---- requests -------------------------------------------------------------- */

/* Returns how many chunks have been asked for or announced and are not here. */
static uint32_t count_waited(const struct mmc_loss *loss,
			     const struct mmc_bitmap *claimed)
{
	size_t nwords = mmc_bitmap_bytes(claimed->nbits) / sizeof(uint64_t);
	uint32_t nwaited = 0;

	for (size_t w = 0; w < nwords; w++)
		nwaited += mmc_set_bits(
			(loss->asked.words[w] | loss->before.words[w]) &
			~claimed->words[w]);
	return nwaited;
}

/* Begins the first retry interval, unless one is under way. */
static void start_retry(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->retry.at_ns != MMC_NEVER_NS)
		return;
	mmc_backoff_start(&loss->retry, now_ns, retry_ns(loss, now_ns));
	loss->retried_ns = now_ns;
	loss->retried_heard = mmc_loss_heard(loss);
}

void mmc_loss_suppress(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns)
{
	const struct mmc_bitmap *known[] = { claimed, &loss->lost };
	uint32_t end = run.first + run.count;

	mmc_bitmap_set_run(&loss->asked, run);
	loss->waited_chunks = count_waited(loss, claimed);
	start_retry(loss, now_ns);
	for (;;) {
		run = mmc_bitmap_next_clear(known, 2, run.first, end);
		if (run.count == 0)
			return;
		loss->nlost += run.count;
		mmc_bitmap_set_run(&loss->lost, run);
	}
}

/*
 * Returns how long the link may be idle between two batches of chunks, at the rate at
 * which chunks have arrived. An answer may be behind the next batch.
 */
static uint64_t lull_ns(const struct mmc_loss *loss)
{
	uint64_t heard_chunks = mmc_max_u32(1, mmc_loss_heard(loss));
	uint64_t batch_ns = loss->schedule.batch_chunks *
			    (loss->heard_ns - loss->begun_ns) / heard_chunks;

	return mmc_min_u64(2 * batch_ns, MMC_BACKOFF_MAX_NS);
}

/*
 * Returns whether answers may still be on their way: the request may have queued behind
 * one window of chunks, and the answer behind another.
 */
static bool may_be_queued(const struct mmc_loss *loss, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint64_t window_chunks =
		(uint64_t)schedule->window_chunks * schedule->nchains;

	uint64_t idle_ns =
		mmc_max_u64(mmc_loss_retry_ns(loss, now_ns), lull_ns(loss));

	return now_ns - loss->heard_ns < idle_ns &&
	       now_ns - loss->retried_ns < QUEUED_MAX_NS &&
	       mmc_loss_heard(loss) - loss->retried_heard < 2 * window_chunks;
}

/* Returns how many chunks of `asked` are not here. */
static uint32_t count_missed(const struct mmc_bitmap *asked,
			     const struct mmc_bitmap *claimed)
{
	size_t nwords = mmc_bitmap_bytes(claimed->nbits) / sizeof(uint64_t);
	uint32_t nmissed = 0;

	for (size_t w = 0; w < nwords; w++)
		nmissed += mmc_set_bits(asked->words[w] & ~claimed->words[w]);
	return nmissed;
}

/*
 * Adapts how many chunks are asked for by direct NAKs, after `nmissed` of those asked
 * for in the interval before have not come. If many have not, the answers to all ranks
 * together overflow a queue on the way.
 */
static void adapt_direct_chunks(struct mmc_loss *loss, uint32_t nmissed)
{
	struct mmc_run all = { .first = 0, .count = loss->before.nbits };
	uint32_t nasked = mmc_bitmap_count_run(&loss->before, all);

	if (nmissed > nasked / 8)
		loss->direct_chunks = mmc_max_u32(MMC_LOSS_DIRECT_CHUNKS,
						  loss->direct_chunks / 2);
	else if (nasked > 0)
		loss->direct_chunks = mmc_min_u32(loss->budget_chunks,
						  2 * loss->direct_chunks);
}

/*
 * Returns whether all chunks may be asked for again, even those of the latest request.
 */
static bool all_are_old(const struct mmc_loss *loss, uint64_t now_ns)
{
	return now_ns >= mmc_loss_ending_ns(loss) &&
	       now_ns - loss->asked_ns >= 2 * loss->retry.interval_ns;
}

/*
 * Begins the next retry interval when it is due. Chunks that were asked for before the
 * interval that ends now may then be asked for again.
 */
static void turn_interval(struct mmc_loss *loss,
			  const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	uint32_t nmissed; /* chunks asked for before that have not come */
	bool all_old;

	if (now_ns < loss->retry.at_ns)
		return;
	if (may_be_queued(loss, now_ns)) {
		loss->retry.at_ns = now_ns + mmc_loss_retry_ns(loss, now_ns);
		return;
	}
	loss->retry.interval_ns = mmc_max_u64(loss->retry.interval_ns,
					      mmc_loss_retry_ns(loss, now_ns));
	nmissed = count_missed(&loss->before, claimed);
	adapt_direct_chunks(loss, nmissed);
	all_old = all_are_old(loss, now_ns);
	if (all_old || nmissed > 0)
		mmc_backoff_fire_rarely(&loss->retry, loss->trip_ns, now_ns);
	else if (now_ns >= mmc_loss_ending_ns(loss))
		loss->retry.at_ns =
			loss->asked_ns + 2 * loss->retry.interval_ns;
	else
		loss->retry.at_ns = now_ns + loss->retry.interval_ns;
	loss->retried_ns = now_ns;
	loss->reached = mmc_loss_heard(loss) > loss->retried_heard;
	loss->retried_heard = mmc_loss_heard(loss);
	if (all_old)
		mmc_bitmap_clear_all(&loss->before);
	else
		mmc_bitmap_copy(&loss->before, &loss->asked);
	mmc_bitmap_clear_all(&loss->asked);
	loss->waited_chunks = count_waited(loss, claimed);
	loss->nasked++;
	loss->ask_ns = now_ns;
}

/*
 * Shortens the retry interval once, when the operation is ending. From then on answers
 * queue behind no window: how long earlier answers took means nothing any more, and
 * those that have not come are lost. This does not hold for neighbours, whose answers
 * may still be on their way around the ring.
 */
static void hasten(struct mmc_loss *loss, uint64_t now_ns)
{
	uint64_t retry_ns = mmc_loss_retry_ns(loss, now_ns);

	if (loss->hastened || loss->retry.at_ns == MMC_NEVER_NS ||
	    now_ns < mmc_loss_ending_ns(loss))
		return;
	loss->hastened = true;
	loss->answer_ns = 0;
	if (loss->retry.at_ns > now_ns + retry_ns)
		mmc_backoff_start(&loss->retry, now_ns, retry_ns);
}

/* Returns how many chunks of a block, counted from its first, are here or lost. */
static uint32_t block_limit(const struct mmc_loss *loss,
			    const struct mmc_block *block)
{
	const struct mmc_schedule *schedule = &loss->schedule;

	return mmc_chain_lost_end(
		&loss->chains[mmc_schedule_chain(schedule, block)],
		mmc_schedule_turn(schedule, block), block->nchunks);
}

/* Returns how many more chunks may be asked for now. */
static uint32_t budget_left(const struct mmc_loss *loss)
{
	uint32_t budget = budget_chunks(loss);

	return budget > loss->waited_chunks ? budget - loss->waited_chunks : 0;
}

/*
 * Adds runs of `owner`'s block to the NAK. Returns false when it is full or the budget
 * used up.
 */
static bool sweep_block(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint32_t owner, struct mmc_nak *nak)
{
	const struct mmc_bitmap *known[] = { claimed, &loss->asked,
					     &loss->before, loss->spared };
	unsigned nmaps = loss->spared != NULL ? 4 : 3;
	const struct mmc_block block =
		mmc_layout_block(&loss->schedule.layout, owner);
	uint32_t end = block.first + block_limit(loss, &block);
	uint32_t from = mmc_max_u32(loss->sweep_chunk, block.first);

	if (mmc_bitmap_next_clear(known, 1, from, end).count > 0)
		loss->missing = true;
	while (from < end) {
		struct mmc_run run =
			mmc_bitmap_next_clear(known, nmaps, from, end);

		if (run.count == 0)
			break;
		if (nak->nruns == MMC_RUNS_MAX)
			return false;
		run.count = mmc_min_u32(run.count, budget_left(loss));
		if (run.count == 0) {
			loss->held = true;
			loss->sweep_chunk = claimed->nbits;
			return false;
		}
		loss->waited_chunks += run.count;
		nak->runs[nak->nruns++] = run;
		from = run.first + run.count;
		loss->sweep_chunk = from;
	}
	loss->sweep_chunk = block.first + block.nchunks;
	return true;
}

/*
 * Goes on with the sweep up to a chunk that another repairer is asked for, or until the
 * NAK is full. Returns whether the NAK asks for anything.
 */
static bool sweep(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  struct mmc_nak *nak)
{
	const struct mmc_layout *layout = &loss->schedule.layout;

	nak->nruns = 0;
	while (loss->sweep_chunk < claimed->nbits) {
		uint32_t owner = mmc_layout_owner(layout, loss->sweep_chunk);
		uint32_t repairer = loss->policy->repairer(
			loss->rank, layout->nranks, owner, loss->nasked);

		if (nak->nruns > 0 && repairer != nak->peer)
			break;
		nak->peer = repairer;
		if (!sweep_block(loss, claimed, owner, nak))
			break;
	}
	return nak->nruns > 0;
}

/* Records that the chunks of `nak` are asked for. */
static void note_asked(struct mmc_loss *loss, const struct mmc_nak *nak,
		       uint64_t now_ns)
{
	if (nak->nruns == 0)
		return;
	for (uint32_t i = 0; i < nak->nruns; i++) {
		loss->nlost += nak->runs[i].count -
			       mmc_bitmap_count_run(&loss->lost, nak->runs[i]);
		mmc_bitmap_set_run(&loss->lost, nak->runs[i]);
		mmc_bitmap_set_run(&loss->asked, nak->runs[i]);
	}
	loss->asked_ns = now_ns;
	time_request(loss, nak->runs[nak->nruns - 1], now_ns);
}

bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, struct mmc_nak *nak)
{
	mmc_loss_lose_gaps(loss, claimed, now_ns);
	hasten(loss, now_ns);
	turn_interval(loss, claimed, now_ns);
	if (now_ns >= loss->ask_ns) {
		loss->ask_ns = MMC_NEVER_NS;
		loss->sweep_chunk = 0;
		loss->missing = false;
	}
	if (loss->sweep_chunk >= claimed->nbits)
		return false;
	if (!sweep(loss, claimed, nak) && !loss->missing) {
		mmc_backoff_stop(&loss->retry);
		loss->nasked = 0;
		return false;
	}
	nak->direct = mmc_loss_asks_directly(loss);
	note_asked(loss, nak, now_ns);
	/*
	 * This is also needed if all that is missing was announced, since announced
	 * repairs may be lost, too.
	 */
	start_retry(loss, now_ns);
	return nak->nruns > 0;
}
