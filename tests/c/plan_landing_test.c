/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks land once, in the order in which their last chunks become present. */
#include "core/plan/landing.h"

#include "check.h"
#include "support/prng.h"

enum { RANKS_MAX = 9, CHUNKS_MAX = 400, CHUNK_BYTES = 100 };

static struct {
	struct mmc_layout layout;
	_Alignas(16) uint8_t table[RANKS_MAX * 64];
	uint64_t words[CHUNKS_MAX / 64 + 1];
	struct mmc_bitmap present;
	_Alignas(16) uint8_t memory[RANKS_MAX * 8];
	struct mmc_landing landing;
	uint32_t own;
} at;

/* Begins a landing of blocks of these sizes, of which that of rank `own` is here. */
static void begin(const uint64_t *blocks_bytes, uint32_t nranks, uint32_t own)
{
	struct mmc_block block;

	CHECK_EQ(mmc_layout_init_each(&at.layout, nranks, blocks_bytes,
				      CHUNK_BYTES),
		 0);
	CHECK(mmc_layout_bytes(&at.layout) <= sizeof(at.table));
	mmc_layout_tabulate(&at.layout, at.table, blocks_bytes);
	mmc_bitmap_init(&at.present, at.words, at.layout.nchunks);
	block = mmc_layout_block(&at.layout, own);
	mmc_bitmap_set_run(&at.present,
			   (struct mmc_run){ block.first, block.nchunks });
	CHECK(mmc_landing_bytes(nranks) <= sizeof(at.memory));
	mmc_landing_init(&at.landing, at.memory, &at.layout, &at.present,
			 (struct mmc_run){ 0, nranks }, own);
	at.own = own;
}

static void add(uint32_t first, uint32_t count)
{
	const struct mmc_run run = { first, count };

	mmc_bitmap_publish_run(&at.present, run);
	mmc_landing_add(&at.landing, run);
}

/* This rank's block comes first, then those that are empty, then the others. */
static void the_order(void)
{
	static const uint64_t sizes[] = { 250, 0, 100, 301, 0 };

	begin(sizes, 5, 2);
	CHECK_EQ(mmc_landing_count(&at.landing), 3);
	CHECK_EQ(mmc_landing_rank(&at.landing, 0), 2);
	CHECK_EQ(mmc_landing_rank(&at.landing, 1), 1);
	CHECK_EQ(mmc_landing_rank(&at.landing, 2), 4);
	add(7, 1);
	add(0, 2);
	add(4, 3);
	CHECK_EQ(mmc_landing_count(&at.landing), 4);
	CHECK_EQ(mmc_landing_rank(&at.landing, 3), 3);
	add(2, 1);
	CHECK_EQ(mmc_landing_count(&at.landing), 5);
	CHECK_EQ(mmc_landing_rank(&at.landing, 4), 0);
}

/* A run may reach from one block into others. */
static void a_run_over_several_blocks(void)
{
	static const uint64_t sizes[] = { 100, 300, 0, 200, 100 };

	begin(sizes, 5, 0);
	add(2, 4);
	CHECK_EQ(mmc_landing_count(&at.landing), 3);
	CHECK_EQ(mmc_landing_rank(&at.landing, 2), 3);
	add(1, 1);
	add(6, 1);
	CHECK_EQ(mmc_landing_rank(&at.landing, 3), 1);
	CHECK_EQ(mmc_landing_rank(&at.landing, 4), 4);
}

/* Of a Bcast only the root's block lands, even an empty one. */
static void one_block(void)
{
	static const uint64_t sizes[] = { 100 };

	mmc_layout_init_sole(&at.layout, 4, 3, 1000, CHUNK_BYTES);
	mmc_bitmap_init(&at.present, at.words, at.layout.nchunks);
	mmc_landing_init(&at.landing, at.memory, &at.layout, &at.present,
			 (struct mmc_run){ 3, 1 }, 0);
	CHECK_EQ(mmc_landing_count(&at.landing), 0);
	CHECK(!mmc_landing_has(&at.landing, 3, 0, 1));
	add(0, 9);
	CHECK(mmc_landing_has(&at.landing, 3, 0, 900));
	CHECK(!mmc_landing_has(&at.landing, 3, 0, 901));
	add(9, 1);
	CHECK_EQ(mmc_landing_count(&at.landing), 1);
	CHECK_EQ(mmc_landing_rank(&at.landing, 0), 3);
	begin(sizes, 1, 0);
	CHECK_EQ(mmc_landing_count(&at.landing), 1);
	mmc_layout_init_sole(&at.layout, 4, 3, 0, CHUNK_BYTES);
	mmc_landing_init(&at.landing, at.memory, &at.layout, &at.present,
			 (struct mmc_run){ 3, 1 }, 0);
	CHECK_EQ(mmc_landing_count(&at.landing), 1);
	CHECK_EQ(mmc_landing_rank(&at.landing, 0), 3);
}

/* Returns whether all chunks are present that hold these bytes of a block. */
static bool slow_has(uint32_t rank, uint64_t first, uint64_t nbytes)
{
	const struct mmc_block block = mmc_layout_block(&at.layout, rank);

	for (uint64_t byte = first; byte < first + nbytes; byte++)
		if (!mmc_bitmap_test(&at.present,
				     block.first +
					     (uint32_t)(byte / CHUNK_BYTES)))
			return false;
	return true;
}

/* Checks all that is said of the blocks against the bitmap. */
static void check_all(const uint64_t *sizes, struct mmc_prng *prng)
{
	uint32_t nwhole = 0;

	for (uint32_t r = 0; r < at.layout.nranks; r++) {
		uint64_t first = mmc_prng_below(prng, sizes[r] + 1);
		uint64_t nbytes = mmc_prng_below(prng, sizes[r] - first + 1);

		CHECK_EQ(mmc_landing_has(&at.landing, r, first, nbytes),
			 slow_has(r, first, nbytes));
		nwhole += slow_has(r, 0, sizes[r]);
	}
	CHECK_EQ(mmc_landing_count(&at.landing), nwhole);
	for (uint32_t i = 0; i < nwhole; i++) {
		uint32_t rank = mmc_landing_rank(&at.landing, i);

		CHECK(slow_has(rank, 0, sizes[rank]));
		for (uint32_t k = 0; k < i; k++)
			CHECK(mmc_landing_rank(&at.landing, k) != rank);
	}
}

/* Random blocks, of which random runs become present, land when they are whole. */
static void as_the_bitmap_says(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct mmc_prng prng = { .state = seed };
		uint32_t nranks =
			1 + (uint32_t)mmc_prng_below(&prng, RANKS_MAX);
		uint64_t sizes[RANKS_MAX];

		for (uint32_t r = 0; r < nranks; r++)
			sizes[r] = mmc_prng_below(&prng, 4) == 0
					   ? 0
					   : mmc_prng_below(&prng, 3000);
		begin(sizes, nranks, (uint32_t)mmc_prng_below(&prng, nranks));
		for (uint32_t i = 0; i < 2000; i++) {
			const struct mmc_bitmap *map = &at.present;
			uint32_t n = at.layout.nchunks;
			struct mmc_run run = mmc_bitmap_next_clear(
				&map, 1, (uint32_t)mmc_prng_below(&prng, n + 1),
				n);

			if (run.count > 0)
				add(run.first, 1 + (uint32_t)mmc_prng_below(
							   &prng, run.count));
			if (i % 40 == 0)
				check_all(sizes, &prng);
		}
	}
}

CHECK_MAIN(CHECK_TEST(the_order), CHECK_TEST(a_run_over_several_blocks),
	   CHECK_TEST(one_block), CHECK_TEST(as_the_bitmap_says))
