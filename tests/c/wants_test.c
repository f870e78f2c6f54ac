/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunks that a fetcher wants, against a model with a state for each. */
#include "check.h"
#include "core/repair/wants.h"
#include "support/memory.h"
#include "support/prng.h"

#define NCHUNKS 200
#define NWORDS ((NCHUNKS + 63) / 64)

struct model {
	struct mmc_wants wants;
	struct mmc_bitmap claimed;
	uint64_t words[NWORDS];
	uint8_t *memory;
	bool wanted[NCHUNKS];
	bool due[NCHUNKS];
	bool reading[NCHUNKS];
};

static void open_model(struct model *at)
{
	*at = (struct model){ 0 };
	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_wants_bytes(NCHUNKS));
	mmc_wants_init(&at->wants, at->memory, NCHUNKS);
	mmc_bitmap_init(&at->claimed, at->words, NCHUNKS);
	CHECK_EQ(mmc_wants_words(&at->wants), NWORDS);
}

static struct mmc_run random_run(struct mmc_prng *prng)
{
	uint32_t first = (uint32_t)mmc_prng_below(prng, NCHUNKS);

	return (struct mmc_run){
		first,
		1 + (uint32_t)mmc_prng_below(prng, NCHUNKS - first),
	};
}

static void add(struct model *at, struct mmc_run run, bool due)
{
	bool grown = false;

	for (uint32_t c = run.first; c < run.first + run.count; c++) {
		if (mmc_bitmap_test(&at->claimed, c))
			continue;
		grown |= !at->wanted[c];
		at->wanted[c] = true;
		at->due[c] |= due && !at->reading[c];
	}
	CHECK_EQ(mmc_wants_add(&at->wants, &at->claimed, run, due), grown);
}

static void hold(struct model *at, uint32_t word, uint64_t held)
{
	bool grown = false;

	for (uint32_t c = word * 64; c < NCHUNKS && c < word * 64 + 64; c++)
		if ((held >> c % 64 & 1) && at->wanted[c] && !at->reading[c]) {
			grown |= !at->due[c];
			at->due[c] = true;
		}
	CHECK_EQ(mmc_wants_hold(&at->wants, word, held), grown);
}

static void check_lacking(struct model *at, uint32_t word)
{
	uint64_t lacking = mmc_wants_lacking(&at->wants, &at->claimed, word);

	for (uint32_t c = word * 64; c < NCHUNKS && c < word * 64 + 64; c++) {
		at->wanted[c] &= !mmc_bitmap_test(&at->claimed, c);
		CHECK_EQ(lacking >> c % 64 & 1,
			 at->wanted[c] && !at->due[c] && !at->reading[c]);
	}
}

/* Takes what is due, as the model says, and begins to read it. */
static struct mmc_run take(struct model *at, uint32_t nmax)
{
	struct mmc_run run = mmc_wants_take_due(&at->wants, &at->claimed, nmax);
	uint32_t first = 0;

	while (first < NCHUNKS &&
	       (!at->due[first] || mmc_bitmap_test(&at->claimed, first)))
		at->due[first++] = false;
	CHECK_EQ(run.count == 0, first == NCHUNKS);
	if (run.count == 0)
		return run;
	CHECK_EQ(run.first, first);
	CHECK(run.count <= nmax);
	for (uint32_t c = first; c < first + run.count; c++) {
		CHECK(at->due[c] && !mmc_bitmap_test(&at->claimed, c));
		at->due[c] = false;
		at->reading[c] = true;
	}
	mmc_wants_begin_read(&at->wants, run);
	return run;
}

static void end(struct model *at, struct mmc_run run, bool good)
{
	for (uint32_t c = run.first; c < run.first + run.count; c++) {
		at->reading[c] = false;
		at->due[c] |= !good;
	}
	mmc_wants_end_read(&at->wants, run, good);
}

/* Any sequence of calls leaves each chunk in the state that the model has. */
static void as_the_model(void)
{
	struct mmc_prng prng = { .state = 7 };
	static struct model at;

	for (unsigned round = 0; round < 20; round++) {
		open_model(&at);
		for (unsigned i = 0; i < 300; i++) {
			struct mmc_run run;

			add(&at, random_run(&prng),
			    mmc_prng_below(&prng, 4) == 0);
			mmc_bitmap_test_and_set(
				&at.claimed,
				(uint32_t)mmc_prng_below(&prng, NCHUNKS));
			hold(&at, (uint32_t)mmc_prng_below(&prng, NWORDS),
			     mmc_prng_next(&prng) & mmc_prng_next(&prng));
			check_lacking(&at,
				      (uint32_t)mmc_prng_below(&prng, NWORDS));
			run = take(&at,
				   1 + (uint32_t)mmc_prng_below(&prng, 20));
			if (run.count > 0)
				end(&at, run, mmc_prng_below(&prng, 3) > 0);
		}
		free(at.memory);
	}
}

/* When the neighbour cannot be read, all that is wanted is due at once. */
static void all_due(void)
{
	static struct model at;
	struct mmc_run run;

	open_model(&at);
	CHECK(!mmc_wants_any_due(&at.wants));
	add(&at, (struct mmc_run){ 60, 10 }, false);
	CHECK(!mmc_wants_any_due(&at.wants));
	mmc_wants_make_due(&at.wants);
	CHECK(mmc_wants_any_due(&at.wants));
	mmc_bitmap_set_run(&at.claimed, (struct mmc_run){ 60, 2 });
	mmc_wants_forget(&at.wants, &at.claimed);
	CHECK(!mmc_bitmap_test(&at.wants.wanted, 61));
	CHECK(mmc_bitmap_test(&at.wants.wanted, 62));
	run = mmc_wants_take_due(&at.wants, &at.claimed, NCHUNKS);
	CHECK_EQ(run.first, 62);
	CHECK_EQ(run.count, 8);
	CHECK_EQ(mmc_wants_take_due(&at.wants, &at.claimed, 1).count, 0);
	CHECK(!mmc_wants_any_due(&at.wants));
	free(at.memory);
}

CHECK_MAIN(CHECK_TEST(as_the_model), CHECK_TEST(all_due))
