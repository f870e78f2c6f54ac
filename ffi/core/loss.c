/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/loss.h"

#include "core/bits.h"
#include "core/memory.h"

/* A shorter silence is more often a sender's waiting for a processor. */
#define QUIET_MIN_NS (300 * MMC_US_NS)

/* Spread over this, the requests of many ranks become one (see donor.h). */
#define JITTER_PER_RANK_NS (5 * MMC_US_NS)
#define JITTER_MAX_NS MMC_MS_NS

/* Network paths reorder within microseconds, hosts within a queue's turn. */
#define ALLOWANCE_MIN_NS (50 * MMC_US_NS)
#define ALLOWANCE_MAX_NS MMC_MS_NS

/* Of fewer chunks all may be lost by chance. */
#define DEAF_CHUNKS 8

#define RETRY_MIN_NS (200 * MMC_US_NS)

/* A request of less would be answered in less than a batch or two. */
#define BUDGET_CHUNKS_MIN 32

/* What is asked for while chains go on, of the whole budget. */
#define BUDGET_PART 4

/* However slow the link is, an answer has not been under way for longer than this. */
#define QUEUED_MAX_NS (100 * MMC_MS_NS)

size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nsenders, uint32_t nchains)
{
	return 3 * mmc_part_bytes(mmc_bitmap_bytes(nchunks)) +
	       mmc_part_bytes(nchains * sizeof(struct mmc_chain)) +
	       mmc_part_bytes(mmc_chain_sequences(nsenders, nchains) *
			      sizeof(struct mmc_sequence));
}

void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory, uint32_t rank,
		   uint32_t nchunks, uint32_t nchains, uint64_t seed,
		   const struct mmc_repair_strategy *strategy)
{
	size_t bytes = mmc_bitmap_bytes(nchunks);

	*loss = (struct mmc_loss){
		.rank = rank,
		.strategy = strategy,
		.prng = { .state = seed },
		.gap_ns = MMC_NEVER_NS,
		.ask_ns = MMC_NEVER_NS,
		.silence_ns = MMC_NEVER_NS,
		.sweep_chunk = nchunks,
		.timed_chunk = UINT32_MAX,
	};
	mmc_backoff_stop(&loss->retry);
	mmc_bitmap_init(&loss->asked, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->before, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->lost, mmc_part_take(&memory, bytes), nchunks);
	loss->chains =
		mmc_part_take(&memory, nchains * sizeof(struct mmc_chain));
	loss->sequences = (struct mmc_sequence *)memory;
}

/* ---- what comes --------------------------------------------------------- */

struct mmc_sequence *mmc_loss_follow(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const struct mmc_block *block,
				     uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint32_t number = mmc_schedule_chain(schedule, block);
	struct mmc_chain *chain = &loss->chains[number];
	uint32_t npassed = chain->npassed;
	struct mmc_sequence *sequence =
		mmc_chain_follow(chain, schedule, number, claimed,
				 mmc_schedule_turn(schedule, block), now_ns);

	if (chain->npassed > npassed) {
		loss->passed = true;
		loss->ask_ns = now_ns;
	}
	return sequence;
}

void mmc_loss_pass(struct mmc_loss *loss, uint32_t chain, uint64_t now_ns)
{
	struct mmc_chain *at = &loss->chains[chain];

	if (at->turn == at->nturns)
		return;
	mmc_chain_pass(at, &loss->schedule, chain, now_ns);
	if (at->turn == at->nturns)
		loss->nopen--;
	else
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, now_ns + loss->quiet_ns);
}

void mmc_loss_sent(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		   const struct mmc_block *block, struct mmc_run run,
		   uint64_t now_ns)
{
	uint32_t chain = mmc_schedule_chain(&loss->schedule, block);
	struct mmc_sequence *sequence =
		mmc_loss_follow(loss, claimed, block, now_ns);

	loss->chains[chain].npassed += run.count;
	if (sequence == NULL)
		return;
	sequence->heard_ns = now_ns;
	sequence->end = run.first + run.count;
	sequence->lost_end = sequence->end;
	sequence->nleft -= run.count;
	loss->chains[chain].seen = mmc_max_u32(loss->chains[chain].seen,
					       sequence->start + sequence->end);
	mmc_loss_pass(loss, chain, now_ns);
}

/* Takes what came of a sender before the plan was known. */
static void catch_up(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		     uint32_t owner, uint64_t now_ns)
{
	const struct mmc_block block =
		mmc_layout_block(&loss->schedule.layout, owner);
	uint32_t chain = mmc_schedule_chain(&loss->schedule, &block);
	uint32_t end = block.first + block.nchunks;
	struct mmc_run run = mmc_bitmap_next_set(claimed, block.first, end);
	struct mmc_sequence *sequence;

	if (run.count == 0 || owner == loss->rank)
		return;
	sequence = mmc_loss_follow(loss, claimed, &block, now_ns);
	while (run.count > 0) {
		uint32_t last = run.first + run.count - 1;

		loss->chains[chain].nheard += run.count;
		loss->chains[chain].npassed += run.count;
		sequence->nleft -= run.count;
		mmc_loss_hear(loss, &loss->chains[chain], sequence,
			      last - block.first, now_ns);
		run = mmc_bitmap_next_set(claimed, last + 1, end);
	}
	mmc_loss_pass(loss, chain, now_ns);
}

/* Expects the first senders of all chains. */
static void begin_chains(struct mmc_loss *loss,
			 const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_layout *layout = &schedule->layout;
	struct mmc_sequence *sequences = loss->sequences;

	loss->nopen = schedule->nchains;
	for (uint32_t c = 0; c < schedule->nchains; c++) {
		mmc_chain_init(&loss->chains[c], sequences, schedule, c,
			       now_ns);
		sequences += loss->chains[c].nsequences;
	}
	for (uint32_t s = 0; s < layout->nsenders; s++)
		catch_up(loss, claimed, mmc_layout_sender(layout, s), now_ns);
	for (uint32_t c = 0; c < schedule->nchains; c++)
		mmc_loss_pass(loss, c, now_ns);
}

void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed, uint64_t srtt_ns,
		    uint64_t late_ns, uint64_t batch_ns, uint32_t budget_chunks,
		    uint64_t now_ns)
{
	uint64_t nranks = schedule->layout.nranks;

	loss->schedule = *schedule;
	loss->begun_ns = now_ns;
	loss->busy_ns = MMC_BACKOFF_MAX_NS;
	loss->heard_ns = now_ns;
	loss->budget_chunks = budget_chunks;
	loss->quiet_ns = mmc_max_u64(QUIET_MIN_NS, 4 * srtt_ns) +
			 mmc_min_u64(batch_ns, MMC_BACKOFF_MAX_NS) + late_ns;
	loss->jitter_ns =
		mmc_min_u64(JITTER_MAX_NS, nranks * JITTER_PER_RANK_NS);
	loss->allowance_ns = mmc_min_u64(
		ALLOWANCE_MAX_NS, mmc_max_u64(ALLOWANCE_MIN_NS, srtt_ns / 2));
	loss->allowance_ns = mmc_max_u64(loss->allowance_ns, late_ns);
	/* An answer is under way for longer than a round trip. */
	loss->retry_ns = mmc_max_u64(RETRY_MIN_NS, srtt_ns + srtt_ns / 4) +
			 loss->jitter_ns;
	loss->silence_ns = now_ns + loss->quiet_ns;
	loss->silence_chain = schedule->nchains;
	begin_chains(loss, claimed, now_ns);
}

void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_strategy *strategy,
			     uint64_t now_ns)
{
	loss->strategy = strategy;
	loss->silence_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	loss->nopen = 0;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		mmc_chain_end(&loss->chains[c]);
		loss->chains[c].npassed =
			mmc_schedule_length(&loss->schedule, c);
	}
}

/* Smooths in how long an answer took (gain 1/8, as RFC 6298 has it). */
static void time_answer(struct mmc_loss *loss, uint64_t time_ns)
{
	loss->answer_ns = loss->answer_ns == 0
				  ? time_ns
				  : (7 * loss->answer_ns + time_ns) / 8;
	loss->timed_chunk = UINT32_MAX;
}

/* Times the answer to a request, one at a time, unless it may be asked again. */
static void time_request(struct mmc_loss *loss, struct mmc_run run,
			 uint64_t now_ns)
{
	if (loss->timed_chunk != UINT32_MAX &&
	    mmc_bitmap_test(&loss->asked, loss->timed_chunk))
		return;
	loss->timed_chunk = run.first + run.count - 1;
	loss->timed_ns = now_ns;
}

/* The first retry interval: longer than answers have taken. */
static uint64_t retry_ns(const struct mmc_loss *loss)
{
	return mmc_max_u64(loss->retry_ns,
			   mmc_min_u64(loss->answer_ns + loss->answer_ns / 4,
				       MMC_BACKOFF_MAX_NS));
}

/*
 * What may be asked for at a time: while chains go on their windows fill the queues,
 * and answers get a part.
 */
static uint32_t budget_chunks(const struct mmc_loss *loss)
{
	uint32_t part = loss->nopen > 0 ? BUDGET_PART : 1;

	return mmc_max_u32(BUDGET_CHUNKS_MIN, loss->budget_chunks / part);
}

void mmc_loss_came(struct mmc_loss *loss, uint32_t chunk, uint64_t now_ns)
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
	}
}

void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->gap_ns != MMC_NEVER_NS)
		return;
	loss->gap_ns = now_ns + loss->allowance_ns +
		       mmc_prng_below(&loss->prng, loss->jitter_ns);
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		for (uint32_t i = 0; i < chain->nsequences; i++)
			chain->sequences[i].gap_end = chain->sequences[i].end;
	}
}

/* Whether chunks of the sequence are missing that are not lost yet. */
static bool has_gap(const struct mmc_sequence *sequence,
		    const struct mmc_bitmap *claimed)
{
	uint32_t first = sequence->first;

	return mmc_bitmap_next_clear(&claimed, 1, first + sequence->lost_end,
				     first + sequence->end)
		       .count > 0;
}

/* Counts the noted gaps that are still open after the allowance as lost. */
static void lose_gaps(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		      uint64_t now_ns)
{
	bool again = false;

	if (now_ns < loss->gap_ns)
		return;
	loss->gap_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	loss->passed = true;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++) {
		struct mmc_chain *chain = &loss->chains[c];

		for (uint32_t i = 0; i < chain->nsequences; i++) {
			struct mmc_sequence *sequence = &chain->sequences[i];

			if (sequence->turn >= chain->nbegun)
				continue;
			mmc_chain_lose(chain, sequence, claimed,
				       sequence->gap_end);
			again |= has_gap(sequence, claimed);
		}
		mmc_loss_pass(loss, c, now_ns);
	}
	if (again)
		mmc_loss_gap(loss, now_ns);
}

/* ---- asking for what is lost ---------------------------------------------- */

/* The chunks that have been asked for, or announced, and are not here. */
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

/* Begins the first retry interval, if none is under way. */
static void start_retry(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->retry.at_ns != MMC_NEVER_NS)
		return;
	mmc_backoff_start(&loss->retry, now_ns, retry_ns(loss));
	loss->retried_ns = now_ns;
	loss->retried_heard = mmc_loss_heard(loss);
}

uint32_t mmc_loss_hush(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns)
{
	const struct mmc_bitmap *known[] = { claimed, &loss->lost };
	uint32_t end = run.first + run.count;
	uint32_t nlost = 0;

	mmc_bitmap_set_run(&loss->asked, run);
	loss->waited_chunks = count_waited(loss, claimed);
	start_retry(loss, now_ns);
	for (;;) {
		run = mmc_bitmap_next_clear(known, 2, run.first, end);
		if (run.count == 0)
			return nlost;
		nlost += run.count;
		mmc_bitmap_set_run(&loss->lost, run);
	}
}

/* Whether answers may still be on their way: requests and they queue behind a window. */
static bool answers_queue(const struct mmc_loss *loss, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint64_t window_chunks =
		(uint64_t)schedule->window_chunks * schedule->nchains;

	return now_ns - loss->heard_ns < loss->retry_ns &&
	       now_ns - loss->retried_ns < QUEUED_MAX_NS &&
	       mmc_loss_heard(loss) - loss->retried_heard < 2 * window_chunks;
}

/* Whether any chunk of `asked` is not here. */
static bool misses(const struct mmc_bitmap *asked,
		   const struct mmc_bitmap *claimed)
{
	size_t nwords = mmc_bitmap_bytes(claimed->nbits) / sizeof(uint64_t);

	for (size_t w = 0; w < nwords; w++)
		if ((asked->words[w] & ~claimed->words[w]) != 0)
			return true;
	return false;
}

/* A new retry interval: what was asked for long ago may be asked for again. */
static void turn_interval(struct mmc_loss *loss,
			  const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	if (now_ns < loss->retry.at_ns)
		return;
	if (answers_queue(loss, now_ns)) {
		loss->retry.at_ns = now_ns + loss->retry_ns;
		return;
	}
	if (misses(&loss->before, claimed))
		mmc_backoff_due(&loss->retry, now_ns);
	else
		loss->retry.at_ns = now_ns + loss->retry.interval_ns;
	loss->retried_ns = now_ns;
	loss->reached = mmc_loss_heard(loss) > loss->retried_heard;
	loss->retried_heard = mmc_loss_heard(loss);
	mmc_bitmap_copy(&loss->before, &loss->asked);
	mmc_bitmap_clear_all(&loss->asked);
	loss->waited_chunks = count_waited(loss, claimed);
	loss->nasked++;
	loss->ask_ns = now_ns;
}

/* The first chunks of a block that are here or lost. */
static uint32_t block_limit(const struct mmc_loss *loss,
			    const struct mmc_block *block)
{
	const struct mmc_schedule *schedule = &loss->schedule;

	return mmc_chain_lost_end(
		&loss->chains[mmc_schedule_chain(schedule, block)],
		mmc_schedule_turn(schedule, block), block->nchunks);
}

static uint32_t budget_left(const struct mmc_loss *loss)
{
	uint32_t budget = budget_chunks(loss);

	return budget > loss->waited_chunks ? budget - loss->waited_chunks : 0;
}

/* Collects runs of one block to ask for; false when no more may be. */
static bool sweep_block(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
			uint32_t owner, struct mmc_run *runs, uint32_t *nruns)
{
	const struct mmc_bitmap *known[] = { claimed, &loss->asked,
					     &loss->before };
	const struct mmc_block block =
		mmc_layout_block(&loss->schedule.layout, owner);
	uint32_t end = block.first + block_limit(loss, &block);
	uint32_t from = mmc_max_u32(loss->sweep_chunk, block.first);

	if (mmc_bitmap_next_clear(known, 1, from, end).count > 0)
		loss->missing = true;
	while (from < end) {
		struct mmc_run run = mmc_bitmap_next_clear(known, 3, from, end);

		if (run.count == 0)
			break;
		if (*nruns == MMC_RUNS_MAX)
			return false;
		run.count = mmc_min_u32(run.count, budget_left(loss));
		if (run.count == 0) {
			loss->held = true;
			loss->sweep_chunk = claimed->nbits;
			return false;
		}
		loss->waited_chunks += run.count;
		runs[(*nruns)++] = run;
		from = run.first + run.count;
		loss->sweep_chunk = from;
	}
	loss->sweep_chunk = block.first + block.nchunks;
	return true;
}

/* Goes on with the sweep up to the next donor that is to be asked. */
static bool sweep(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint32_t *donor, struct mmc_run *runs, uint32_t *nruns)
{
	const struct mmc_layout *layout = &loss->schedule.layout;

	*nruns = 0;
	while (loss->sweep_chunk < claimed->nbits) {
		uint32_t owner = mmc_layout_owner(layout, loss->sweep_chunk);
		uint32_t whom = loss->strategy->donor(
			loss->rank, layout->nranks, owner, loss->nasked);

		if (*nruns > 0 && whom != *donor)
			break;
		*donor = whom;
		if (!sweep_block(loss, claimed, owner, runs, nruns))
			break;
	}
	return *nruns > 0;
}

bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, uint32_t *donor, struct mmc_run *runs,
		  uint32_t *nruns, uint32_t *nlost)
{
	lose_gaps(loss, claimed, now_ns);
	turn_interval(loss, claimed, now_ns);
	if (now_ns >= loss->ask_ns) {
		loss->ask_ns = MMC_NEVER_NS;
		loss->sweep_chunk = 0;
		loss->missing = false;
	}
	if (loss->sweep_chunk >= claimed->nbits)
		return false;
	if (!sweep(loss, claimed, donor, runs, nruns) && !loss->missing) {
		mmc_backoff_stop(&loss->retry);
		loss->nasked = 0;
		return false;
	}
	for (uint32_t i = 0; i < *nruns; i++) {
		*nlost += runs[i].count -
			  mmc_bitmap_count_run(&loss->lost, runs[i]);
		mmc_bitmap_set_run(&loss->lost, runs[i]);
		mmc_bitmap_set_run(&loss->asked, runs[i]);
	}
	if (*nruns > 0)
		time_request(loss, runs[*nruns - 1], now_ns);
	/* Also if all that is missing was announced: that may be lost as well. */
	start_retry(loss, now_ns);
	return *nruns > 0;
}

/* ---- what was heard ------------------------------------------------------- */
uint32_t mmc_loss_heard(const struct mmc_loss *loss)
{
	uint32_t nheard = 0;

	for (uint32_t c = 0; c < loss->schedule.nchains; c++)
		nheard += loss->chains[c].nheard;
	return nheard;
}

uint32_t mmc_loss_unheard(const struct mmc_loss *loss)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block own =
		mmc_layout_block(&schedule->layout, loss->rank);
	uint32_t own_chain = mmc_schedule_chain(schedule, &own);
	bool own_first = mmc_schedule_start(schedule, &own) == 0;

	for (uint32_t c = 0; c < schedule->nchains; c++) {
		uint32_t own_chunks = c == own_chain ? own.nchunks : 0;

		if (mmc_schedule_length(schedule, c) >=
			    DEAF_CHUNKS + own_chunks &&
		    loss->chains[c].nheard == 0)
			return mmc_schedule_rank(schedule, c,
						 own_first ? own_chunks : 0);
	}
	return MMC_PEER_ALL;
}

uint64_t mmc_loss_deadline(const struct mmc_loss *loss)
{
	if (loss->sweep_chunk < loss->asked.nbits ||
	    loss->silence_chain < loss->schedule.nchains)
		return 0;
	return mmc_min_u64(mmc_min_u64(loss->ask_ns, loss->silence_ns),
			   mmc_min_u64(loss->gap_ns, loss->retry.at_ns));
}
