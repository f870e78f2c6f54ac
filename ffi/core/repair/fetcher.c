/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/fetcher.h"

#include "support/bits.h"
#include "support/memory.h"

/* The longest time from one look at the neighbour's bitmap to the next. */
#define POLL_MAX_NS MMC_MS_NS

/* A neighbour asked for its advert answers within two round trips, or never. */
#define ASK_MIN_NS (200 * MMC_US_NS)

/*
 * Owners are asked for chunks that have been wanted for one to two of these times:
 * until then the ring usually brings them, and a second copy would be too much.
 */
#define LEASE_MIN_NS (50 * MMC_MS_NS)
#define LEASE_ROUND_TRIPS 32

size_t mmc_fetcher_bytes(uint32_t nchunks)
{
	return 4 * mmc_part_bytes(mmc_bitmap_bytes(nchunks));
}

void mmc_fetcher_init(struct mmc_fetcher *fetcher, uint8_t *memory,
		      uint32_t rank, const struct mmc_layout *layout,
		      uint32_t read_bytes)
{
	uint32_t nchunks = layout->nchunks;
	size_t bytes = mmc_bitmap_bytes(nchunks);
	uint32_t payload_bytes = read_bytes < MMC_GENERATION_BYTES
					 ? 0
					 : read_bytes - MMC_GENERATION_BYTES;

	*fetcher = (struct mmc_fetcher){
		.layout = *layout,
		.rank = rank,
		.words_max = mmc_min_u32(payload_bytes / sizeof(uint64_t),
					 MMC_READ_WORDS_MAX),
		.chunks_max = payload_bytes / layout->chunk_bytes,
		.due_from = nchunks,
		.sweep_word = (uint32_t)(bytes / sizeof(uint64_t)),
		.poll_ns = MMC_NEVER_NS,
		.lease_ns = MMC_NEVER_NS,
	};
	fetcher->useless = fetcher->words_max == 0 || fetcher->chunks_max == 0;
	mmc_backoff_stop(&fetcher->asking);
	mmc_bitmap_init(&fetcher->wanted, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&fetcher->due, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&fetcher->reading, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&fetcher->overdue, mmc_part_take(&memory, bytes),
			nchunks);
}

void mmc_fetcher_begin(struct mmc_fetcher *fetcher, uint64_t srtt_ns)
{
	fetcher->srtt_ns = mmc_min_u64(srtt_ns, POLL_MAX_NS);
	fetcher->interval_ns = fetcher->srtt_ns;
}

static uint32_t nwords(const struct mmc_fetcher *fetcher)
{
	return (uint32_t)(mmc_bitmap_bytes(fetcher->wanted.nbits) /
			  sizeof(uint64_t));
}

static bool is_readable(const struct mmc_fetcher *fetcher)
{
	return !fetcher->useless && fetcher->known && fetcher->advert.has_data;
}

/* Looks at the neighbour's bitmap again once no look is under way. */
static void look_soon(struct mmc_fetcher *fetcher, uint64_t now_ns)
{
	fetcher->fresh = true;
	fetcher->interval_ns = fetcher->srtt_ns;
	if (fetcher->nmaps == 0 && fetcher->sweep_word == nwords(fetcher))
		fetcher->poll_ns = now_ns;
}

/* Stops reading: wanted chunks are asked for by message from now on. */
static void give_up(struct mmc_fetcher *fetcher)
{
	fetcher->useless = true;
	fetcher->poll_ns = MMC_NEVER_NS;
	fetcher->sweep_word = nwords(fetcher);
	for (uint32_t w = 0; w < nwords(fetcher); w++)
		fetcher->due.words[w] = fetcher->wanted.words[w] &
					~fetcher->reading.words[w];
	fetcher->due_from = 0;
	mmc_backoff_stop(&fetcher->asking);
}

void mmc_fetcher_learn(struct mmc_fetcher *fetcher,
		       const struct mmc_advert *advert, uint64_t now_ns)
{
	bool was_readable = is_readable(fetcher);

	if (fetcher->useless)
		return;
	if (advert->generation == 0) {
		give_up(fetcher);
		return;
	}
	if (fetcher->known &&
	    (fetcher->advert.generation != advert->generation ||
	     fetcher->advert.has_data))
		return;
	fetcher->advert = *advert;
	fetcher->known = true;
	if (is_readable(fetcher) && !was_readable) {
		mmc_backoff_stop(&fetcher->asking);
		look_soon(fetcher, now_ns);
	}
}

static uint64_t lease_time_ns(const struct mmc_fetcher *fetcher)
{
	return mmc_max_u64(LEASE_MIN_NS, LEASE_ROUND_TRIPS * fetcher->srtt_ns);
}

/* Returns the bits of word `word` that lie in `run`. */
static uint64_t bits_of(uint32_t word, struct mmc_run run)
{
	uint64_t base = (uint64_t)word * 64;
	uint64_t end = (uint64_t)run.first + run.count;
	uint64_t bits = ~UINT64_C(0);

	if (run.first > base)
		bits &= ~UINT64_C(0) << (run.first - base);
	if (end < base + 64)
		bits &= ~(~UINT64_C(0) << (end - base));
	return bits;
}

void mmc_fetcher_want(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run run,
		      uint64_t now_ns)
{
	uint64_t end = (uint64_t)run.first + run.count;
	bool grown = false;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < end; w++) {
		uint64_t lacking = bits_of(w, run) & ~claimed->words[w];

		grown |= (lacking & ~fetcher->wanted.words[w]) != 0;
		fetcher->wanted.words[w] |= lacking;
		if (fetcher->useless)
			fetcher->due.words[w] |= lacking &
						 ~fetcher->reading.words[w];
	}
	if (fetcher->lease_ns == MMC_NEVER_NS && !fetcher->lease_over)
		fetcher->lease_ns = now_ns + lease_time_ns(fetcher);
	if (fetcher->useless)
		fetcher->due_from = mmc_min_u32(fetcher->due_from, run.first);
	else if (is_readable(fetcher) && grown)
		look_soon(fetcher, now_ns);
	else if (!is_readable(fetcher) && fetcher->asking.at_ns == MMC_NEVER_NS)
		fetcher->asking = (struct mmc_backoff){
			.at_ns = now_ns,
			.interval_ns =
				mmc_max_u64(ASK_MIN_NS / 2, fetcher->srtt_ns),
		};
}

void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns)
{
	if (is_readable(fetcher))
		look_soon(fetcher, now_ns);
}

/* ---- the neighbour's bitmap ---------------------------------------------- */

/* Returns which chunks of word `word` to look for; forgets those that have arrived. */
static uint64_t lacking(struct mmc_fetcher *fetcher,
			const struct mmc_bitmap *claimed, uint32_t word)
{
	uint64_t *wanted = &fetcher->wanted.words[word];

	*wanted &= ~claimed->words[word];
	return *wanted & ~fetcher->due.words[word] &
	       ~fetcher->reading.words[word];
}

/* Schedules the next look once all reads of this look have ended. */
static void end_look(struct mmc_fetcher *fetcher, uint64_t now_ns)
{
	if (fetcher->nmaps > 0 || fetcher->sweep_word < nwords(fetcher))
		return;
	fetcher->interval_ns =
		fetcher->found
			? fetcher->srtt_ns
			: mmc_min_u64(2 * fetcher->interval_ns, POLL_MAX_NS);
	if (fetcher->fresh)
		fetcher->poll_ns = now_ns;
	else if (fetcher->looked)
		fetcher->poll_ns = now_ns + fetcher->interval_ns;
}

static void begin_look(struct mmc_fetcher *fetcher)
{
	fetcher->poll_ns = MMC_NEVER_NS;
	fetcher->sweep_word = 0;
	fetcher->fresh = false;
	fetcher->found = false;
	fetcher->looked = false;
}

bool mmc_fetcher_map(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *words)
{
	uint32_t end = nwords(fetcher);
	uint32_t first;
	uint32_t last;

	if (!is_readable(fetcher) || fetcher->nreading == MMC_READS_MAX)
		return false;
	if (now_ns >= fetcher->poll_ns)
		begin_look(fetcher);
	if (fetcher->sweep_word == end)
		return false;
	first = fetcher->sweep_word;
	while (first < end && lacking(fetcher, claimed, first) == 0)
		first++;
	if (first == end) {
		fetcher->sweep_word = end;
		end_look(fetcher, now_ns);
		return false;
	}
	last = first;
	for (uint32_t w = first; w < end && w - first < fetcher->words_max; w++)
		if (lacking(fetcher, claimed, w) != 0)
			last = w;
	*words = (struct mmc_run){ .first = first, .count = last + 1 - first };
	fetcher->sweep_word = last + 1;
	fetcher->looked = true;
	fetcher->nmaps++;
	fetcher->nreading++;
	return true;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t index)
{
	uint64_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

bool mmc_fetcher_mapped(struct mmc_fetcher *fetcher, struct mmc_run words,
			const uint8_t *bytes, uint64_t now_ns)
{
	fetcher->nreading--;
	fetcher->nmaps--;
	if (fetcher->useless)
		return false;
	if (bytes == NULL ||
	    word_at(bytes, words.count) != fetcher->advert.generation) {
		give_up(fetcher);
		return false;
	}
	for (uint32_t i = 0; i < words.count; i++) {
		uint32_t w = words.first + i;
		uint64_t held = word_at(bytes, i) & fetcher->wanted.words[w] &
				~fetcher->reading.words[w];

		if ((held & ~fetcher->due.words[w]) == 0)
			continue;
		fetcher->due.words[w] |= held;
		fetcher->due_from = mmc_min_u32(fetcher->due_from, w * 64);
		fetcher->found = true;
	}
	end_look(fetcher, now_ns);
	return true;
}

/* ---- the neighbour's data ------------------------------------------------ */

/* Takes the next run, of at most `nmax` chunks, that is due and not here. */
static struct mmc_run take_due(struct mmc_fetcher *fetcher,
			       const struct mmc_bitmap *claimed, uint32_t nmax)
{
	uint32_t nchunks = claimed->nbits;
	struct mmc_run run = { .first = nchunks };
	uint32_t count = 0;

	while (run.first == nchunks && fetcher->due_from < nchunks) {
		struct mmc_run next = mmc_bitmap_next_set(
			&fetcher->due, fetcher->due_from, nchunks);

		fetcher->due_from = next.first;
		if (next.count == 0)
			break;
		mmc_bitmap_clear(&fetcher->due, next.first);
		fetcher->due_from++;
		if (!mmc_bitmap_test(claimed, next.first))
			run.first = next.first;
	}
	if (run.first == nchunks)
		return run;
	count = 1;
	while (count < nmax && fetcher->due_from < nchunks &&
	       mmc_bitmap_test(&fetcher->due, fetcher->due_from) &&
	       !mmc_bitmap_test(claimed, fetcher->due_from)) {
		mmc_bitmap_clear(&fetcher->due, fetcher->due_from++);
		count++;
	}
	run.count = count;
	return run;
}

bool mmc_fetcher_data(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run *run)
{
	if (fetcher->useless || fetcher->nreading == MMC_READS_MAX)
		return false;
	*run = take_due(fetcher, claimed, fetcher->chunks_max);
	if (run->count == 0)
		return false;
	mmc_bitmap_set_run(&fetcher->reading, *run);
	fetcher->nreading++;
	return true;
}

bool mmc_fetcher_over(struct mmc_fetcher *fetcher, struct mmc_run run,
		      uint64_t generation)
{
	bool good = generation != 0 && generation == fetcher->advert.generation;

	fetcher->nreading--;
	for (uint32_t i = 0; i < run.count; i++)
		mmc_bitmap_clear(&fetcher->reading, run.first + i);
	if (good)
		return true;
	if (!fetcher->useless)
		give_up(fetcher);
	mmc_bitmap_set_run(&fetcher->due, run);
	fetcher->due_from = mmc_min_u32(fetcher->due_from, run.first);
	return false;
}

/* ---- messages ------------------------------------------------------------ */

bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *runs, uint32_t *nruns, bool *direct)
{
	uint32_t nchunks = claimed->nbits;
	uint32_t n = 0;

	*direct = fetcher->useless;
	if (fetcher->useless) {
		while (n < MMC_RUNS_MAX && fetcher->due_from < nchunks) {
			runs[n] = take_due(fetcher, claimed, nchunks);
			n += runs[n].count > 0;
		}
		*nruns = n;
		return n > 0;
	}
	if (is_readable(fetcher) || !mmc_backoff_due(&fetcher->asking, now_ns))
		return false;
	for (uint32_t from = 0; n < MMC_RUNS_MAX && from < nchunks;) {
		struct mmc_run run =
			mmc_bitmap_next_set(&fetcher->wanted, from, nchunks);

		from = run.first + run.count;
		if (run.count > 0 &&
		    mmc_bitmap_count_run(claimed, run) < run.count)
			runs[n++] = run;
	}
	if (n == 0)
		mmc_backoff_stop(&fetcher->asking);
	*nruns = n;
	return n > 0;
}

/* Finds the chunks wanted since the lease began that are neither due nor being read. */
static void find_overdue(struct mmc_fetcher *fetcher,
			 const struct mmc_bitmap *claimed)
{
	for (uint32_t w = 0; w < nwords(fetcher); w++)
		fetcher->overdue.words[w] &= lacking(fetcher, claimed, w);
	fetcher->lease_over = true;
	fetcher->lease_chunk = 0;
}

/* Begins a lease; chunks wanted now are overdue when it ends. False if none are. */
static bool begin_lease(struct mmc_fetcher *fetcher,
			const struct mmc_bitmap *claimed)
{
	uint64_t any = 0;

	for (uint32_t w = 0; w < nwords(fetcher); w++) {
		fetcher->wanted.words[w] &= ~claimed->words[w];
		fetcher->overdue.words[w] = fetcher->wanted.words[w];
		any |= fetcher->wanted.words[w];
	}
	return any != 0;
}

/* Collects runs of the block of the next overdue chunk's owner. */
static uint32_t collect_overdue(struct mmc_fetcher *fetcher, uint32_t *owner,
				struct mmc_run *runs)
{
	uint32_t nchunks = fetcher->overdue.nbits;
	struct mmc_run run = mmc_bitmap_next_set(&fetcher->overdue,
						 fetcher->lease_chunk, nchunks);
	struct mmc_block block;
	uint32_t n = 0;
	uint32_t end;

	fetcher->lease_chunk = run.first;
	if (run.count == 0)
		return 0;
	*owner = mmc_layout_owner(&fetcher->layout, run.first);
	block = mmc_layout_block(&fetcher->layout, *owner);
	end = block.first + block.nchunks;
	while (n < MMC_RUNS_MAX && fetcher->lease_chunk < end) {
		run = mmc_bitmap_next_set(&fetcher->overdue,
					  fetcher->lease_chunk, end);
		fetcher->lease_chunk = run.first + run.count;
		if (run.count > 0)
			runs[n++] = run;
	}
	return n;
}

bool mmc_fetcher_lease(struct mmc_fetcher *fetcher,
		       const struct mmc_bitmap *claimed, uint64_t now_ns,
		       uint32_t *owner, struct mmc_run *runs, uint32_t *nruns,
		       bool *direct)
{
	uint32_t nranks = fetcher->layout.nranks;
	uint32_t left = (fetcher->rank + nranks - 1) % nranks;

	if (now_ns >= fetcher->lease_ns) {
		fetcher->lease_ns = MMC_NEVER_NS;
		fetcher->leased = fetcher->leasing;
		fetcher->leasing = false;
		find_overdue(fetcher, claimed);
	}
	if (!fetcher->lease_over)
		return false;
	*nruns = collect_overdue(fetcher, owner, runs);
	if (*nruns > 0) {
		fetcher->leasing = true;
		*direct = fetcher->leased || *owner == left;
		return true;
	}
	fetcher->lease_over = false;
	if (begin_lease(fetcher, claimed))
		fetcher->lease_ns = now_ns + lease_time_ns(fetcher);
	return false;
}

uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher)
{
	uint32_t nchunks = fetcher->wanted.nbits;
	uint64_t at_ns = fetcher->lease_over ? 0 : fetcher->lease_ns;

	if (fetcher->useless)
		return fetcher->due_from < nchunks ? 0 : at_ns;
	if (!is_readable(fetcher))
		return mmc_min_u64(at_ns, fetcher->asking.at_ns);
	if (fetcher->nreading == MMC_READS_MAX)
		return at_ns;
	if (fetcher->sweep_word < nwords(fetcher) ||
	    fetcher->due_from < nchunks)
		return 0;
	return mmc_min_u64(at_ns, fetcher->poll_ns);
}
