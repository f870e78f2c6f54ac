/* SPDX-License-Identifier: BSD-3-Clause */
/* A mender keeps parity until a group can be mended, and no longer. */
#include "core/repair/mender.h"

#include "check.h"
#include "support/memory.h"
#include "support/prng.h"

#define NRANKS 3
#define BLOCK_CHUNKS 70
#define CHUNK_BYTES 100
#define TAIL_BYTES 7
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define OWNER 1

struct at {
	struct mmc_layout layout;
	struct mmc_bitmap claimed;
	struct mmc_bitmap present;
	uint64_t words[2][(NCHUNKS + 63) / 64];
	uint8_t *memory;
	struct mmc_mender *mender;
};

static void open(struct at *at)
{
	CHECK_EQ(mmc_layout_init(&at->layout, NRANKS,
				 (BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES,
				 CHUNK_BYTES),
		 0);
	mmc_bitmap_init(&at->claimed, at->words[0], NCHUNKS);
	mmc_bitmap_init(&at->present, at->words[1], NCHUNKS);
	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_mender_bytes(NCHUNKS));
	at->mender = mmc_mender_init(at->memory, &at->layout, &at->claimed,
				     &at->present);
	at->mender->grouping = (struct mmc_grouping){
		.data_chunks = 8,
		.parity_chunks = 3,
		.depth = 4,
	};
}

static void place(struct at *at, uint32_t chunk)
{
	const struct mmc_run run = { .first = chunk, .count = 1 };

	mmc_bitmap_test_and_set(&at->claimed, chunk);
	mmc_bitmap_publish(&at->present, chunk);
	mmc_mender_placed(at->mender, run);
}

static int keep(struct at *at, uint32_t group, uint32_t row)
{
	return mmc_mender_keep(at->mender,
			       (struct mmc_parity){ .owner = OWNER,
						    .group = group,
						    .row = row },
			       CHUNK_BYTES);
}

/* What no sender sends is foreign: groups, rows and lengths that do not exist. */
static void foreign(void)
{
	struct at at;
	struct mmc_parity parity = { .owner = OWNER };

	open(&at);
	CHECK_EQ(keep(&at, 9, 0), MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep(&at, UINT32_MAX, 0), MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep(&at, 0, 255 - 8), MMC_UNKEPT_FOREIGN);
	CHECK_EQ(mmc_mender_keep(at.mender, parity, CHUNK_BYTES - 1),
		 MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep(&at, 8, 255 - 8 - 1), 0);
	CHECK_EQ(keep(&at, 8, 255 - 8 - 1), MMC_UNKEPT_USELESS);
	free(at.memory);
}

/* Checks the description of a group that is ready, and lets it be mended. */
static void mend(struct at *at, const struct mmc_group *of,
		 struct mmc_parity ready)
{
	struct mmc_mend mend;

	mmc_mender_describe(at->mender, ready, &mend);
	CHECK_EQ(mend.ndata, of->ndata);
	CHECK(mend.nlost > 0);
	CHECK_EQ(mend.last_bytes,
		 of->first + (of->ndata - 1) * of->stride + 1 == BLOCK_CHUNKS
			 ? TAIL_BYTES
			 : CHUNK_BYTES);
	for (uint32_t i = 0; i < mend.nlost; i++)
		CHECK(!mmc_bitmap_test(&at->present,
				       mend.first +
					       mend.columns[i] * mend.stride));
	mmc_mender_end(at->mender, ready);
	for (uint32_t i = 0; i < mend.ndata; i++)
		place(at, mend.first + i * mend.stride);
}

/*
 * Lets chunks of a group, some again, and parity arrive in random order until as many are
 * here as it has chunks, or some never. Returns how many are.
 */
static uint32_t arrive(struct at *at, struct mmc_prng *prng, uint32_t group,
		       const struct mmc_group *of)
{
	struct mmc_parity ready;
	uint32_t here = 0;

	for (uint32_t row = 0; here < of->ndata && row < 40; row++) {
		uint32_t chunk =
			OWNER * BLOCK_CHUNKS + of->first +
			(uint32_t)mmc_prng_below(prng, of->ndata) * of->stride;

		CHECK(!mmc_mender_next(at->mender, &ready));
		if (mmc_prng_below(prng, 2)) {
			here += !mmc_bitmap_test(&at->claimed, chunk);
			place(at, chunk);
		} else {
			CHECK(keep(at, group, row) >= 0);
			here++;
		}
	}
	return here;
}

/*
 * A group is mended exactly when as much of it is here as it has chunks, and what is lost
 * is described.
 */
static void mends_as_soon_as_it_can(void)
{
	struct mmc_prng prng = { .state = check_seed() };
	uint32_t nmended = 0;

	for (unsigned n = 0; n < 400; n++) {
		uint32_t group = (uint32_t)mmc_prng_below(&prng, 9);
		struct mmc_parity ready;
		struct mmc_group of;
		struct at at;
		uint32_t here;

		open(&at);
		of = mmc_grouping_get(&at.mender->grouping, BLOCK_CHUNKS,
				      group);
		here = arrive(&at, &prng, group, &of);
		if (mmc_mender_next(at.mender, &ready)) {
			CHECK_EQ(here, of.ndata);
			CHECK_EQ(ready.owner, OWNER);
			CHECK_EQ(ready.group, group);
			mend(&at, &of, ready);
			nmended++;
			CHECK(!mmc_mender_next(at.mender, &ready));
		}
		if (here == of.ndata)
			CHECK_EQ(at.mender->nheld, 0);
		free(at.memory);
	}
	CHECK(nmended > 50);
}

/* As many missing chunks are spared as parity chunks are kept. */
static void spares_what_need_not_be_asked_for(void)
{
	const struct mmc_run all = { .first = 0, .count = NCHUNKS };
	struct at at;

	open(&at);
	CHECK(keep(&at, 2, 0) >= 0);
	CHECK(keep(&at, 2, 1) >= 0);
	CHECK_EQ(mmc_bitmap_count_run(&at.mender->spared, all), 2);
	free(at.memory);
}

static struct mmc_parity parity_of(uint32_t group, uint32_t row)
{
	return (struct mmc_parity){ .owner = OWNER,
				    .group = group,
				    .row = row };
}

static int keep_early(struct at *at, struct mmc_parity parity, size_t nbytes)
{
	return mmc_mender_keep_early(at->mender, 8, parity, nbytes);
}

/* An early parity chunk is kept once, if its numbers and its length are possible. */
static void takes_early_parity_on_trust(void)
{
	struct mmc_parity parity;
	struct at at;

	open(&at);
	CHECK_EQ(keep_early(&at, parity_of(9, 0), CHUNK_BYTES),
		 MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep_early(&at, parity_of(0, 255 - 8), CHUNK_BYTES),
		 MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep_early(&at, parity_of(0, 0), CHUNK_BYTES + 1),
		 MMC_UNKEPT_FOREIGN);
	CHECK_EQ(keep_early(&at, parity_of(8, 255 - 8 - 1), CHUNK_BYTES), 0);
	CHECK_EQ(keep_early(&at, parity_of(8, 255 - 8 - 1), CHUNK_BYTES),
		 MMC_UNKEPT_USELESS);
	CHECK(!mmc_mender_next(at.mender, &parity));
	free(at.memory);
}

/* Once groups are known, early parity is held like parity that arrives then. */
static void judges_early_parity(void)
{
	const struct mmc_run all = { .first = 0, .count = NCHUNKS };
	uint32_t first = OWNER * BLOCK_CHUNKS;
	struct mmc_parity parity;
	struct at at;

	open(&at);
	/* Group 0 is complete, and group 1 lacks one chunk. */
	for (uint32_t i = 0; i < 8; i++)
		place(&at, first + 4 * i);
	for (uint32_t i = 1; i < 8; i++)
		place(&at, first + 4 * i + 1);
	CHECK_EQ(keep_early(&at, parity_of(0, 0), CHUNK_BYTES), 0);
	CHECK_EQ(keep_early(&at, parity_of(1, 0), CHUNK_BYTES - 1), 1);
	CHECK_EQ(keep_early(&at, parity_of(1, 2), CHUNK_BYTES), 2);
	CHECK_EQ(keep_early(&at, parity_of(1, 1), CHUNK_BYTES), 3);
	CHECK(mmc_mender_judge(at.mender, 0, &parity));
	CHECK(!mmc_mender_judge(at.mender, 1, &parity));
	CHECK(!mmc_mender_next(at.mender, &parity));
	CHECK(mmc_mender_judge(at.mender, 2, &parity));
	CHECK_EQ(parity.owner, OWNER);
	CHECK_EQ(parity.group, 1);
	CHECK_EQ(parity.row, 2);
	CHECK(mmc_mender_judge(at.mender, 3, &parity));
	CHECK(!mmc_mender_judge(at.mender, 3, &parity));
	CHECK_EQ(at.mender->nheld, 1);
	CHECK_EQ(mmc_bitmap_count_run(&at.mender->spared, all), 1);
	CHECK(mmc_mender_next(at.mender, &parity));
	CHECK_EQ(parity.group, 1);
	free(at.memory);
}

/* When all slots are taken, parity is dropped, and slots come back. */
static void slots_are_limited(void)
{
	struct mmc_parity ready;
	struct at at;
	uint32_t nkept = 0;

	open(&at);
	for (uint32_t row = 0; row < 7; row++)
		for (uint32_t owner = 0; owner < NRANKS; owner++)
			for (uint32_t group = 0; group < 8; group++)
				nkept += mmc_mender_keep(at.mender,
							 (struct mmc_parity){
								 owner, group,
								 row },
							 CHUNK_BYTES) >= 0;
	CHECK_EQ(nkept, MMC_MENDER_SLOTS);
	CHECK_EQ(keep(&at, 7, 100), MMC_UNKEPT_FULL);
	for (uint32_t i = 0; i < 32; i++)
		place(&at, OWNER * BLOCK_CHUNKS + i);
	CHECK(!mmc_mender_next(at.mender, &ready));
	CHECK(at.mender->nheld < MMC_MENDER_SLOTS);
	CHECK(keep(&at, 7, 100) >= 0);
	free(at.memory);
}

/* A chunk that is claimed and not yet in its place holds a group up. */
static void waits_for_placements(void)
{
	struct mmc_parity ready;
	struct at at;
	uint32_t first = OWNER * BLOCK_CHUNKS;

	open(&at);
	for (uint32_t i = 2; i < 8; i++)
		place(&at, first + 4 * i);
	mmc_bitmap_test_and_set(&at.claimed, first + 4);
	CHECK(keep(&at, 0, 0) >= 0);
	CHECK(!mmc_mender_next(at.mender, &ready));
	place(&at, first + 4);
	CHECK(mmc_mender_next(at.mender, &ready));
	free(at.memory);
}

CHECK_MAIN(CHECK_TEST(foreign), CHECK_TEST(mends_as_soon_as_it_can),
	   CHECK_TEST(spares_what_need_not_be_asked_for),
	   CHECK_TEST(takes_early_parity_on_trust),
	   CHECK_TEST(judges_early_parity), CHECK_TEST(slots_are_limited),
	   CHECK_TEST(waits_for_placements))
