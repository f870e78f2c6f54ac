/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/fetcher.h"

#include "core/bits.h"
#include "core/memory.h"

/* The neighbour's bitmap is looked at no more rarely than this. */
#define POLL_MAX_NS MMC_MS_NS

/* Who was asked for its advert answers within two round trips, or never. */
#define ASK_MIN_NS (200 * MMC_US_NS)

/*
 * Owners are asked for what has been wanted for one to two of these: until then
 * the ring usually brings it, and twice would be too much.
 */
#define LEASE_MIN_NS (50 * MMC_MS_NS)
#define LEASE_ROUND_TRIPS 32

size_t mmc_reader_bytes(uint32_t nchunks)
{
	return 4 * mmc_part_bytes(mmc_bitmap_bytes(nchunks));
}

void mmc_reader_init(struct mmc_reader *reader, uint8_t *memory, uint32_t rank,
		     const struct mmc_layout *layout, uint32_t read_bytes)
{
	uint32_t nchunks = layout->nchunks;
	size_t bytes = mmc_bitmap_bytes(nchunks);
	uint32_t payload_bytes = read_bytes < MMC_GENERATION_BYTES
					 ? 0
					 : read_bytes - MMC_GENERATION_BYTES;

	*reader = (struct mmc_reader){
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
	reader->useless = reader->words_max == 0 || reader->chunks_max == 0;
	mmc_backoff_stop(&reader->asking);
	mmc_bitmap_init(&reader->wanted, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&reader->due, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&reader->reading, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&reader->overdue, mmc_part_take(&memory, bytes),
			nchunks);
}

void mmc_reader_begin(struct mmc_reader *reader, uint64_t srtt_ns)
{
	reader->srtt_ns = mmc_min_u64(srtt_ns, POLL_MAX_NS);
	reader->interval_ns = reader->srtt_ns;
}

static uint32_t nwords(const struct mmc_reader *reader)
{
	return (uint32_t)(mmc_bitmap_bytes(reader->wanted.nbits) /
			  sizeof(uint64_t));
}

static bool is_readable(const struct mmc_reader *reader)
{
	return !reader->useless && reader->known && reader->advert.exposed;
}

/* Looks at the neighbour's bitmap as soon as it is not being looked at. */
static void look_soon(struct mmc_reader *reader, uint64_t now_ns)
{
	reader->fresh = true;
	reader->interval_ns = reader->srtt_ns;
	if (reader->nmaps == 0 && reader->sweep_word == nwords(reader))
		reader->poll_ns = now_ns;
}

/* Nothing will be read any more: what is wanted is asked for. */
static void give_up(struct mmc_reader *reader)
{
	reader->useless = true;
	reader->poll_ns = MMC_NEVER_NS;
	reader->sweep_word = nwords(reader);
	for (uint32_t w = 0; w < nwords(reader); w++)
		reader->due.words[w] = reader->wanted.words[w] &
				       ~reader->reading.words[w];
	reader->due_from = 0;
	mmc_backoff_stop(&reader->asking);
}

void mmc_reader_learn(struct mmc_reader *reader,
		      const struct mmc_advert *advert, uint64_t now_ns)
{
	bool was_readable = is_readable(reader);

	if (reader->useless)
		return;
	if (advert->generation == 0) {
		give_up(reader);
		return;
	}
	if (reader->known && (reader->advert.generation != advert->generation ||
			      reader->advert.exposed))
		return;
	reader->advert = *advert;
	reader->known = true;
	if (is_readable(reader) && !was_readable) {
		mmc_backoff_stop(&reader->asking);
		look_soon(reader, now_ns);
	}
}

static uint64_t lease_time_ns(const struct mmc_reader *reader)
{
	return mmc_max_u64(LEASE_MIN_NS, LEASE_ROUND_TRIPS * reader->srtt_ns);
}

/* The bits of word `word` that lie in `run`. */
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

void mmc_reader_want(struct mmc_reader *reader,
		     const struct mmc_bitmap *claimed, struct mmc_run run,
		     uint64_t now_ns)
{
	uint64_t end = (uint64_t)run.first + run.count;
	bool grown = false;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < end; w++) {
		uint64_t lacking = bits_of(w, run) & ~claimed->words[w];

		grown |= (lacking & ~reader->wanted.words[w]) != 0;
		reader->wanted.words[w] |= lacking;
		if (reader->useless)
			reader->due.words[w] |= lacking &
						~reader->reading.words[w];
	}
	if (reader->lease_ns == MMC_NEVER_NS && !reader->lease_over)
		reader->lease_ns = now_ns + lease_time_ns(reader);
	if (reader->useless)
		reader->due_from = mmc_min_u32(reader->due_from, run.first);
	else if (is_readable(reader) && grown)
		look_soon(reader, now_ns);
	else if (!is_readable(reader) && reader->asking.at_ns == MMC_NEVER_NS)
		reader->asking = (struct mmc_backoff){
			.at_ns = now_ns,
			.interval_ns =
				mmc_max_u64(ASK_MIN_NS / 2, reader->srtt_ns),
		};
}

void mmc_reader_hurry(struct mmc_reader *reader, uint64_t now_ns)
{
	if (is_readable(reader))
		look_soon(reader, now_ns);
}

/* ---- the neighbour's bitmap ---------------------------------------------- */

/* What is to be looked for of word `word`; forgets what has come. */
static uint64_t lacking(struct mmc_reader *reader,
			const struct mmc_bitmap *claimed, uint32_t word)
{
	uint64_t *wanted = &reader->wanted.words[word];

	*wanted &= ~claimed->words[word];
	return *wanted & ~reader->due.words[word] &
	       ~reader->reading.words[word];
}

/* A look is over when all that it reads has come: when is the next? */
static void end_look(struct mmc_reader *reader, uint64_t now_ns)
{
	if (reader->nmaps > 0 || reader->sweep_word < nwords(reader))
		return;
	reader->interval_ns =
		reader->found
			? reader->srtt_ns
			: mmc_min_u64(2 * reader->interval_ns, POLL_MAX_NS);
	if (reader->fresh)
		reader->poll_ns = now_ns;
	else if (reader->looked)
		reader->poll_ns = now_ns + reader->interval_ns;
}

static void begin_look(struct mmc_reader *reader)
{
	reader->poll_ns = MMC_NEVER_NS;
	reader->sweep_word = 0;
	reader->fresh = false;
	reader->found = false;
	reader->looked = false;
}

bool mmc_reader_map(struct mmc_reader *reader, const struct mmc_bitmap *claimed,
		    uint64_t now_ns, struct mmc_run *words)
{
	uint32_t end = nwords(reader);
	uint32_t first;
	uint32_t last;

	if (!is_readable(reader) || reader->nreading == MMC_READS_MAX)
		return false;
	if (now_ns >= reader->poll_ns)
		begin_look(reader);
	if (reader->sweep_word == end)
		return false;
	first = reader->sweep_word;
	while (first < end && lacking(reader, claimed, first) == 0)
		first++;
	if (first == end) {
		reader->sweep_word = end;
		end_look(reader, now_ns);
		return false;
	}
	last = first;
	for (uint32_t w = first; w < end && w - first < reader->words_max; w++)
		if (lacking(reader, claimed, w) != 0)
			last = w;
	*words = (struct mmc_run){ .first = first, .count = last + 1 - first };
	reader->sweep_word = last + 1;
	reader->looked = true;
	reader->nmaps++;
	reader->nreading++;
	return true;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t index)
{
	uint64_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

bool mmc_reader_mapped(struct mmc_reader *reader, struct mmc_run words,
		       const uint8_t *bytes, uint64_t now_ns)
{
	reader->nreading--;
	reader->nmaps--;
	if (reader->useless)
		return false;
	if (bytes == NULL ||
	    word_at(bytes, words.count) != reader->advert.generation) {
		give_up(reader);
		return false;
	}
	for (uint32_t i = 0; i < words.count; i++) {
		uint32_t w = words.first + i;
		uint64_t held = word_at(bytes, i) & reader->wanted.words[w] &
				~reader->reading.words[w];

		if ((held & ~reader->due.words[w]) == 0)
			continue;
		reader->due.words[w] |= held;
		reader->due_from = mmc_min_u32(reader->due_from, w * 64);
		reader->found = true;
	}
	end_look(reader, now_ns);
	return true;
}

/* ---- the neighbour's data ------------------------------------------------ */

/* The next run, of at most `nmax` chunks, that is due and has not come. */
static struct mmc_run take_due(struct mmc_reader *reader,
			       const struct mmc_bitmap *claimed, uint32_t nmax)
{
	uint32_t nchunks = claimed->nbits;
	struct mmc_run run = { .first = nchunks };
	uint32_t count = 0;

	while (run.first == nchunks && reader->due_from < nchunks) {
		struct mmc_run next = mmc_bitmap_next_set(
			&reader->due, reader->due_from, nchunks);

		reader->due_from = next.first;
		if (next.count == 0)
			break;
		mmc_bitmap_clear(&reader->due, next.first);
		reader->due_from++;
		if (!mmc_bitmap_test(claimed, next.first))
			run.first = next.first;
	}
	if (run.first == nchunks)
		return run;
	count = 1;
	while (count < nmax && reader->due_from < nchunks &&
	       mmc_bitmap_test(&reader->due, reader->due_from) &&
	       !mmc_bitmap_test(claimed, reader->due_from)) {
		mmc_bitmap_clear(&reader->due, reader->due_from++);
		count++;
	}
	run.count = count;
	return run;
}

bool mmc_reader_data(struct mmc_reader *reader,
		     const struct mmc_bitmap *claimed, struct mmc_run *run)
{
	if (reader->useless || reader->nreading == MMC_READS_MAX)
		return false;
	*run = take_due(reader, claimed, reader->chunks_max);
	if (run->count == 0)
		return false;
	mmc_bitmap_set_run(&reader->reading, *run);
	reader->nreading++;
	return true;
}

bool mmc_reader_over(struct mmc_reader *reader, struct mmc_run run,
		     uint64_t generation)
{
	bool good = generation != 0 && generation == reader->advert.generation;

	reader->nreading--;
	for (uint32_t i = 0; i < run.count; i++)
		mmc_bitmap_clear(&reader->reading, run.first + i);
	if (good)
		return true;
	if (!reader->useless)
		give_up(reader);
	mmc_bitmap_set_run(&reader->due, run);
	reader->due_from = mmc_min_u32(reader->due_from, run.first);
	return false;
}

/* ---- messages ------------------------------------------------------------ */

bool mmc_reader_ask(struct mmc_reader *reader, const struct mmc_bitmap *claimed,
		    uint64_t now_ns, struct mmc_run *runs, uint32_t *nruns,
		    bool *direct)
{
	uint32_t nchunks = claimed->nbits;
	uint32_t n = 0;

	*direct = reader->useless;
	if (reader->useless) {
		while (n < MMC_RUNS_MAX && reader->due_from < nchunks) {
			runs[n] = take_due(reader, claimed, nchunks);
			n += runs[n].count > 0;
		}
		*nruns = n;
		return n > 0;
	}
	if (is_readable(reader) || !mmc_backoff_due(&reader->asking, now_ns))
		return false;
	for (uint32_t from = 0; n < MMC_RUNS_MAX && from < nchunks;) {
		struct mmc_run run =
			mmc_bitmap_next_set(&reader->wanted, from, nchunks);

		from = run.first + run.count;
		if (run.count > 0 &&
		    mmc_bitmap_count_run(claimed, run) < run.count)
			runs[n++] = run;
	}
	if (n == 0)
		mmc_backoff_stop(&reader->asking);
	*nruns = n;
	return n > 0;
}

/* What has been wanted since the lease began, and is not about to come. */
static void find_overdue(struct mmc_reader *reader,
			 const struct mmc_bitmap *claimed)
{
	for (uint32_t w = 0; w < nwords(reader); w++)
		reader->overdue.words[w] &= lacking(reader, claimed, w);
	reader->lease_over = true;
	reader->lease_chunk = 0;
}

/* All that is wanted now is overdue when the next lease ends. */
static bool begin_lease(struct mmc_reader *reader,
			const struct mmc_bitmap *claimed)
{
	uint64_t any = 0;

	for (uint32_t w = 0; w < nwords(reader); w++) {
		reader->wanted.words[w] &= ~claimed->words[w];
		reader->overdue.words[w] = reader->wanted.words[w];
		any |= reader->wanted.words[w];
	}
	return any != 0;
}

/* Goes on to the next overdue chunk: collects runs of its owner's block. */
static uint32_t collect_overdue(struct mmc_reader *reader, uint32_t *owner,
				struct mmc_run *runs)
{
	uint32_t nchunks = reader->overdue.nbits;
	struct mmc_run run = mmc_bitmap_next_set(&reader->overdue,
						 reader->lease_chunk, nchunks);
	struct mmc_block block;
	uint32_t n = 0;
	uint32_t end;

	reader->lease_chunk = run.first;
	if (run.count == 0)
		return 0;
	*owner = mmc_layout_owner(&reader->layout, run.first);
	block = mmc_layout_block(&reader->layout, *owner);
	end = block.first + block.nchunks;
	while (n < MMC_RUNS_MAX && reader->lease_chunk < end) {
		run = mmc_bitmap_next_set(&reader->overdue, reader->lease_chunk,
					  end);
		reader->lease_chunk = run.first + run.count;
		if (run.count > 0)
			runs[n++] = run;
	}
	return n;
}

bool mmc_reader_lease(struct mmc_reader *reader,
		      const struct mmc_bitmap *claimed, uint64_t now_ns,
		      uint32_t *owner, struct mmc_run *runs, uint32_t *nruns,
		      bool *direct)
{
	uint32_t nranks = reader->layout.nranks;
	uint32_t left = (reader->rank + nranks - 1) % nranks;

	if (now_ns >= reader->lease_ns) {
		reader->lease_ns = MMC_NEVER_NS;
		reader->leased = reader->leasing;
		reader->leasing = false;
		find_overdue(reader, claimed);
	}
	if (!reader->lease_over)
		return false;
	*nruns = collect_overdue(reader, owner, runs);
	if (*nruns > 0) {
		reader->leasing = true;
		*direct = reader->leased || *owner == left;
		return true;
	}
	reader->lease_over = false;
	if (begin_lease(reader, claimed))
		reader->lease_ns = now_ns + lease_time_ns(reader);
	return false;
}

uint64_t mmc_reader_deadline(const struct mmc_reader *reader)
{
	uint32_t nchunks = reader->wanted.nbits;
	uint64_t at_ns = reader->lease_over ? 0 : reader->lease_ns;

	if (reader->useless)
		return reader->due_from < nchunks ? 0 : at_ns;
	if (!is_readable(reader))
		return mmc_min_u64(at_ns, reader->asking.at_ns);
	if (reader->nreading == MMC_READS_MAX)
		return at_ns;
	if (reader->sweep_word < nwords(reader) || reader->due_from < nchunks)
		return 0;
	return mmc_min_u64(at_ns, reader->poll_ns);
}
