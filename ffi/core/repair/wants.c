/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/wants.h"

#include "support/bits.h"
#include "support/memory.h"

size_t mmc_wants_bytes(uint32_t nchunks)
{
	return 3 * mmc_part_bytes(mmc_bitmap_bytes(nchunks));
}

void mmc_wants_init(struct mmc_wants *wants, uint8_t *memory, uint32_t nchunks)
{
	size_t bytes = mmc_bitmap_bytes(nchunks);

	wants->due_from = nchunks;
	mmc_bitmap_init(&wants->wanted, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&wants->due, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&wants->reading, mmc_part_take(&memory, bytes),
			nchunks);
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

bool mmc_wants_add(struct mmc_wants *wants, const struct mmc_bitmap *claimed,
		   struct mmc_run run, bool due)
{
	uint64_t end = (uint64_t)run.first + run.count;
	bool grown = false;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < end; w++) {
		uint64_t lacking = bits_of(w, run) & ~claimed->words[w];

		grown |= (lacking & ~wants->wanted.words[w]) != 0;
		wants->wanted.words[w] |= lacking;
		if (due)
			wants->due.words[w] |= lacking &
					       ~wants->reading.words[w];
	}
	if (due)
		wants->due_from = mmc_min_u32(wants->due_from, run.first);
	return grown;
}

uint64_t mmc_wants_lacking(struct mmc_wants *wants,
			   const struct mmc_bitmap *claimed, uint32_t word)
{
	wants->wanted.words[word] &= ~claimed->words[word];
	return wants->wanted.words[word] & ~wants->due.words[word] &
	       ~wants->reading.words[word];
}

void mmc_wants_forget(struct mmc_wants *wants, const struct mmc_bitmap *claimed)
{
	for (uint32_t w = 0; w < mmc_wants_words(wants); w++)
		wants->wanted.words[w] &= ~claimed->words[w];
}

bool mmc_wants_hold(struct mmc_wants *wants, uint32_t word, uint64_t held)
{
	held &= wants->wanted.words[word] & ~wants->reading.words[word];
	if ((held & ~wants->due.words[word]) == 0)
		return false;
	wants->due.words[word] |= held;
	wants->due_from = mmc_min_u32(wants->due_from, word * 64);
	return true;
}

void mmc_wants_make_due(struct mmc_wants *wants)
{
	for (uint32_t w = 0; w < mmc_wants_words(wants); w++)
		wants->due.words[w] = wants->wanted.words[w] &
				      ~wants->reading.words[w];
	wants->due_from = 0;
}

struct mmc_run mmc_wants_take_due(struct mmc_wants *wants,
				  const struct mmc_bitmap *claimed,
				  uint32_t nmax)
{
	uint32_t nchunks = claimed->nbits;
	struct mmc_run run = { .first = nchunks };

	while (run.count == 0 && wants->due_from < nchunks) {
		struct mmc_run next = mmc_bitmap_next_set(
			&wants->due, wants->due_from, nchunks);

		wants->due_from = next.first;
		if (next.count == 0)
			break;
		mmc_bitmap_clear(&wants->due, wants->due_from++);
		if (!mmc_bitmap_test(claimed, next.first))
			run = (struct mmc_run){ .first = next.first,
						.count = 1 };
	}
	while (run.count > 0 && run.count < nmax && wants->due_from < nchunks &&
	       mmc_bitmap_test(&wants->due, wants->due_from) &&
	       !mmc_bitmap_test(claimed, wants->due_from)) {
		mmc_bitmap_clear(&wants->due, wants->due_from++);
		run.count++;
	}
	return run;
}

void mmc_wants_end_read(struct mmc_wants *wants, struct mmc_run run, bool good)
{
	for (uint32_t i = 0; i < run.count; i++)
		mmc_bitmap_clear(&wants->reading, run.first + i);
	if (good)
		return;
	mmc_bitmap_set_run(&wants->due, run);
	wants->due_from = mmc_min_u32(wants->due_from, run.first);
}
