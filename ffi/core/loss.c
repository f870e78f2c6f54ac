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

size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nchains)
{
	return 3 * mmc_part_bytes(mmc_bitmap_bytes(nchunks)) +
	       mmc_part_bytes(nchains * sizeof(struct mmc_chain));
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
		.ask_ns = MMC_NEVER_NS,
		.silence_ns = MMC_NEVER_NS,
		.sweep_chunk = nchunks,
	};
	mmc_backoff_stop(&loss->retry);
	mmc_bitmap_init(&loss->asked, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->before, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&loss->lost, mmc_part_take(&memory, bytes), nchunks);
	loss->chains =
		mmc_part_take(&memory, nchains * sizeof(struct mmc_chain));
}

/* What came before the plan was known counts as seen. */
static void catch_up(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		     uint32_t owner, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, owner);
	uint32_t chain = mmc_schedule_chain(schedule, &block);
	uint32_t end = block.first + block.nchunks;
	struct mmc_run run = mmc_bitmap_next_set(claimed, block.first, end);

	while (run.count > 0) {
		uint32_t last = run.first + run.count - 1;

		loss->chains[chain].nleft -= run.count;
		if (owner != loss->rank) {
			loss->chains[chain].nheard += run.count;
			mmc_loss_hear(loss, chain,
				      mmc_schedule_start(schedule, &block) +
					      last - block.first,
				      now_ns);
		}
		run = mmc_bitmap_next_set(claimed, last + 1, end);
	}
}

void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed, uint64_t srtt_ns,
		    uint64_t late_ns, uint64_t batch_ns, uint32_t budget_chunks,
		    uint64_t now_ns)
{
	const struct mmc_layout *layout = &schedule->layout;
	uint64_t nranks = layout->nranks;

	loss->schedule = *schedule;
	loss->budget_chunks = budget_chunks;
	loss->quiet_ns = mmc_max_u64(QUIET_MIN_NS, 4 * srtt_ns) +
			 mmc_min_u64(batch_ns, MMC_BACKOFF_MAX_NS) + late_ns;
	loss->jitter_ns =
		mmc_min_u64(JITTER_MAX_NS, nranks * JITTER_PER_RANK_NS);
	loss->allowance_ns = mmc_min_u64(
		ALLOWANCE_MAX_NS, mmc_max_u64(ALLOWANCE_MIN_NS, srtt_ns / 2));
	loss->allowance_ns = mmc_max_u64(loss->allowance_ns, late_ns);
	/* The answer has been under way for longer than a round trip. */
	loss->retry_ns = mmc_max_u64(RETRY_MIN_NS, srtt_ns + srtt_ns / 4) +
			 loss->jitter_ns;
	loss->silence_ns = now_ns + loss->quiet_ns;
	loss->silence_chain = schedule->nchains;
	for (uint32_t c = 0; c < schedule->nchains; c++) {
		loss->chains[c] = (struct mmc_chain){
			.nleft = mmc_schedule_length(schedule, c),
			.heard_ns = now_ns,
			.trust_ns = MMC_NEVER_NS,
		};
		mmc_backoff_start(&loss->chains[c].silence, now_ns,
				  loss->quiet_ns);
	}
	for (uint32_t s = 0; s < layout->nsenders; s++)
		catch_up(loss, claimed, mmc_layout_sender(layout, s), now_ns);
}

void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_strategy *strategy,
			     uint64_t now_ns)
{
	loss->strategy = strategy;
	loss->silence_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	for (uint32_t c = 0; c < loss->schedule.nchains; c++)
		loss->chains[c].seen = mmc_schedule_length(&loss->schedule, c);
}

void mmc_loss_came(struct mmc_loss *loss, uint32_t chunk, uint64_t now_ns)
{
	if (!mmc_bitmap_test(&loss->asked, chunk) &&
	    !mmc_bitmap_test(&loss->before, chunk))
		return;
	if (loss->waited_chunks > 0)
		loss->waited_chunks--;
	if (loss->held && loss->waited_chunks <= loss->budget_chunks / 2) {
		loss->held = false;
		loss->ask_ns = now_ns;
	}
}

void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns)
{
	if (loss->ask_ns == MMC_NEVER_NS)
		loss->ask_ns = now_ns + loss->allowance_ns +
			       mmc_prng_below(&loss->prng, loss->jitter_ns);
}

bool mmc_loss_tell(struct mmc_loss *loss, uint32_t owner, uint32_t sent_chunks,
		   bool pausing, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, owner);
	uint32_t sent = mmc_min_u32(sent_chunks, block.nchunks);
	uint32_t told = mmc_schedule_start(schedule, &block) + sent;
	struct mmc_chain *at =
		&loss->chains[mmc_schedule_chain(schedule, &block)];

	if (sent == 0 || told <= at->seen)
		return at->silence.at_ns != MMC_NEVER_NS &&
		       at->silence.interval_ns > loss->quiet_ns;
	if (told > at->told) {
		at->told = told;
		at->told_ns = now_ns;
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, now_ns + loss->quiet_ns);
	}
	if (pausing) {
		at->trust_ns = now_ns + loss->allowance_ns;
		loss->silence_ns = mmc_min_u64(loss->silence_ns, at->trust_ns);
	}
	return false;
}

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

uint32_t mmc_loss_hush(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns)
{
	const struct mmc_bitmap *known[] = { claimed, &loss->lost };
	uint32_t end = run.first + run.count;
	uint32_t nlost = 0;

	mmc_bitmap_set_run(&loss->asked, run);
	loss->waited_chunks = count_waited(loss, claimed);
	if (loss->retry.at_ns == MMC_NEVER_NS)
		mmc_backoff_start(&loss->retry, now_ns, loss->retry_ns);
	for (;;) {
		run = mmc_bitmap_next_clear(known, 2, run.first, end);
		if (run.count == 0)
			return nlost;
		nlost += run.count;
		mmc_bitmap_set_run(&loss->lost, run);
	}
}

/* A new retry interval: what was asked for long ago may be asked for again. */
static void turn_interval(struct mmc_loss *loss,
			  const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	if (!mmc_backoff_due(&loss->retry, now_ns))
		return;
	mmc_bitmap_copy(&loss->before, &loss->asked);
	mmc_bitmap_clear_all(&loss->asked);
	loss->waited_chunks = count_waited(loss, claimed);
	loss->nasked++;
	loss->ask_ns = now_ns;
}

/* The first chunks of a block that would be here if nothing had been lost. */
static uint32_t block_limit(const struct mmc_loss *loss,
			    const struct mmc_block *block)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	uint32_t chain = mmc_schedule_chain(schedule, block);
	uint32_t start = mmc_schedule_start(schedule, block);
	uint32_t seen = loss->chains[chain].seen;

	if (loss->chains[chain].nleft == 0 || seen <= start)
		return 0;
	return mmc_min_u32(seen - start, block->nchunks);
}

static uint32_t budget_left(const struct mmc_loss *loss)
{
	return loss->budget_chunks > loss->waited_chunks
		       ? loss->budget_chunks - loss->waited_chunks
		       : 0;
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
	/* Also if all that is missing was announced: that may be lost as well. */
	if (loss->retry.at_ns == MMC_NEVER_NS)
		mmc_backoff_start(&loss->retry, now_ns, loss->retry_ns);
	return *nruns > 0;
}

/* Takes what a chain's sender has told as seen, if that may be trusted now. */
static bool trust(struct mmc_loss *loss, uint32_t chain, uint64_t now_ns)
{
	struct mmc_chain *at = &loss->chains[chain];
	bool silent = now_ns - mmc_max_u64(at->heard_ns, at->told_ns) >=
		      loss->quiet_ns;

	if (at->told <= at->seen) {
		at->trust_ns = MMC_NEVER_NS;
		return false;
	}
	/* What comes says that more was on its way than the record told of. */
	if (at->trust_ns != MMC_NEVER_NS)
		at->trust_ns = mmc_max_u64(at->trust_ns,
					   at->heard_ns + loss->allowance_ns);
	if (!silent && now_ns < at->trust_ns)
		return false;
	mmc_loss_hear(loss, chain, at->told - 1, now_ns);
	at->trust_ns = MMC_NEVER_NS;
	loss->ask_ns = now_ns;
	loss->passed = true;
	return true;
}

/* The rank whose chunk is the next to come, if `chain` has been silent. */
static bool chain_is_silent(struct mmc_loss *loss, uint32_t chain,
			    uint64_t now_ns, uint32_t *peer)
{
	struct mmc_chain *at = &loss->chains[chain];

	if (at->nleft == 0 ||
	    at->seen == mmc_schedule_length(&loss->schedule, chain)) {
		mmc_backoff_stop(&at->silence);
		at->trust_ns = MMC_NEVER_NS;
		return false;
	}
	if (trust(loss, chain, now_ns) ||
	    now_ns - at->heard_ns < loss->quiet_ns) {
		mmc_backoff_start(&at->silence, at->heard_ns, loss->quiet_ns);
		return false;
	}
	if (!mmc_backoff_due(&at->silence, now_ns))
		return false;
	*peer = mmc_schedule_rank(&loss->schedule, chain, at->seen);
	return *peer != loss->rank;
}

bool mmc_loss_silent(struct mmc_loss *loss, uint64_t now_ns, uint32_t *peer)
{
	if (now_ns >= loss->silence_ns) {
		loss->silence_ns = MMC_NEVER_NS;
		loss->silence_chain = 0;
	}
	while (loss->silence_chain < loss->schedule.nchains) {
		uint32_t chain = loss->silence_chain++;
		bool silent = chain_is_silent(loss, chain, now_ns, peer);

		loss->silence_ns = mmc_min_u64(
			loss->silence_ns,
			mmc_min_u64(loss->chains[chain].silence.at_ns,
				    loss->chains[chain].trust_ns));
		if (silent)
			return true;
	}
	return false;
}

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
			   loss->retry.at_ns);
}
