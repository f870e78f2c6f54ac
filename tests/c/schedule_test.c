/* SPDX-License-Identifier: BSD-3-Clause */
/* How blocks are shared out among chains, turns, windows and batches. */
#include "check.h"
#include "core/plan/schedule.h"
#include "support/prng.h"

#define NRANKS_MAX 40
#define CHUNK_BYTES 1000

static struct mmc_schedule planned(uint32_t nranks, uint32_t block_chunks,
				   uint32_t nchains, uint32_t window_chunks)
{
	struct mmc_layout layout;
	struct mmc_schedule schedule;

	CHECK_EQ(mmc_layout_init(&layout, nranks,
				 (uint64_t)block_chunks * CHUNK_BYTES,
				 CHUNK_BYTES),
		 0);
	mmc_schedule_init(&schedule, NULL, &layout, nchains,
			  window_chunks * CHUNK_BYTES, UINT32_MAX);
	CHECK_EQ(schedule.layout.nranks, nranks);
	CHECK_EQ(schedule.layout.block_chunks, block_chunks);
	return schedule;
}

/* Walks all chains turn by turn, and checks that each sender has exactly one turn. */
static void check_turns(const struct mmc_schedule *schedule)
{
	const struct mmc_layout *layout = &schedule->layout;
	uint8_t seen[NRANKS_MAX] = { 0 };
	uint32_t nseen = 0;

	for (uint32_t chain = 0; chain < schedule->nchains; chain++) {
		uint32_t length = mmc_schedule_length(schedule, chain);
		uint32_t position = 0;

		while (position < length) {
			uint32_t rank =
				mmc_schedule_rank(schedule, chain, position);
			struct mmc_block block;

			if (!CHECK(rank < layout->nranks))
				return;
			CHECK_EQ(seen[rank]++, 0);
			nseen++;
			block = mmc_layout_block(layout, rank);
			CHECK_EQ(mmc_schedule_chain(schedule, &block), chain);
			CHECK_EQ(mmc_schedule_start(schedule, &block),
				 position);
			position += block.nchunks;
			CHECK_EQ(mmc_schedule_rank(schedule, chain,
						   position - 1),
				 rank);
		}
		CHECK_EQ(position, length);
		CHECK(length > 0);
	}
	CHECK_EQ(nseen, layout->nsenders);
}

/* Any number of chains from 1 to P is taken as it is, even if it does not divide P. */
static void every_rank_has_a_turn(void)
{
	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t nchains = 1; nchains <= nranks + 2; nchains++)
			for (uint32_t chunks = 1; chunks <= 3; chunks++) {
				struct mmc_schedule schedule =
					planned(nranks, chunks, nchains, 64);

				CHECK_EQ(schedule.nchains,
					 nchains < nranks ? nchains : nranks);
				check_turns(&schedule);
			}
}

/* If no rank has data, every chain has length 0. */
static void empty_blocks(void)
{
	for (uint32_t nchains = 0; nchains <= 5; nchains++) {
		struct mmc_schedule schedule = planned(5, 0, nchains, 64);

		for (uint32_t c = 0; c < schedule.nchains; c++)
			CHECK_EQ(mmc_schedule_length(&schedule, c), 0);
	}
}

/*
 * All ranks send at once while W/(P-1) holds two of the smallest batches.
 * Otherwise each chain has two batches, and there are at least two chains: with
 * one, a downlink would idle.
 */
static void auto_chains(void)
{
	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t window = 0; window <= 700; window++) {
			struct mmc_schedule schedule =
				planned(nranks, 2, MMC_CHAINS_AUTO, window);
			uint32_t nchains = schedule.nchains;

			check_turns(&schedule);
			if (nranks <= 2 || window / (nranks - 1) >= 8) {
				CHECK_EQ(nchains, nranks);
				continue;
			}
			CHECK(nchains >= 2);
			CHECK(nchains < nranks);
			if (nchains > 2)
				CHECK(window / nchains >= 8);
			else
				CHECK(window / 3 < 2 * MMC_BATCH_CHUNKS_MAX);
		}
}

/*
 * The chunks that all active senders have in flight fit the receiver's window, unless
 * it is too small for two chunks of each.
 */
static void windows(void)
{
	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t nchains = 0; nchains <= nranks; nchains++)
			for (uint32_t window = 0; window <= 300; window += 7) {
				struct mmc_schedule schedule =
					planned(nranks, 9, nchains, window);
				uint32_t share = schedule.window_chunks;
				uint32_t batch = schedule.batch_chunks;
				uint32_t nsenders = schedule.nchains + 1;

				if (schedule.nchains == nranks)
					nsenders = nranks - 1;
				CHECK(share == 2 || share * nsenders <= window);
				CHECK(batch >= 1);
				CHECK(batch <= MMC_BATCH_CHUNKS_MAX);
				CHECK(batch * 2 <= share);
			}
}

/* Where few ranks send, each may fill its own buffer at a receiver, and no more. */
static void sources_apart(void)
{
	struct mmc_layout layout;
	struct mmc_schedule schedule;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t nchains = 1; nchains <= nranks; nchains++) {
			uint32_t window_chunks = 16 * (nranks - 1);

			CHECK_EQ(mmc_layout_init(&layout, nranks, CHUNK_BYTES,
						 CHUNK_BYTES),
				 0);
			mmc_schedule_init(&schedule, NULL, &layout, nchains,
					  window_chunks * CHUNK_BYTES,
					  16 * CHUNK_BYTES);
			CHECK(schedule.window_chunks <= 16);
			if (nchains + 2 <= nranks)
				CHECK_EQ(schedule.window_chunks, 16);
		}
}

/* The root of a Bcast has the whole window, or its own buffer where there is one. */
static void one_sender(void)
{
	struct mmc_layout layout;
	struct mmc_schedule schedule;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t nchains = 0; nchains <= nranks; nchains++) {
			uint32_t window_chunks = 16 * (nranks - 1);

			CHECK_EQ(mmc_layout_init_sole(
					 &layout, nranks, nranks / 2,
					 7 * CHUNK_BYTES, CHUNK_BYTES),
				 0);
			mmc_schedule_init(&schedule, NULL, &layout, nchains,
					  window_chunks * CHUNK_BYTES,
					  UINT32_MAX);
			CHECK_EQ(schedule.nchains, 1);
			CHECK_EQ(schedule.window_chunks, window_chunks);
			check_turns(&schedule);
			mmc_schedule_init(&schedule, NULL, &layout, nchains,
					  window_chunks * CHUNK_BYTES,
					  16 * CHUNK_BYTES);
			CHECK_EQ(schedule.window_chunks, 16);
		}
}

/* Empty blocks take no turn, and the chunks in flight fit the window. */
static void uneven_blocks(void)
{
	_Alignas(16) uint8_t table[NRANKS_MAX * 64];
	_Alignas(16) uint8_t memory[NRANKS_MAX * 4 + 16];
	struct mmc_prng prng = { .state = check_seed() };
	uint64_t blocks_bytes[NRANKS_MAX];
	struct mmc_schedule schedule;
	struct mmc_layout layout;

	for (int i = 0; i < 20000; i++) {
		uint32_t nranks = 2 + (uint32_t)mmc_prng_below(&prng, 39);
		uint32_t window = (uint32_t)mmc_prng_below(&prng, 400);
		uint32_t nheard;

		for (uint32_t r = 0; r < nranks; r++)
			blocks_bytes[r] = mmc_prng_below(&prng, 2) *
					  mmc_prng_below(&prng, 9000);
		CHECK_EQ(mmc_layout_init_each(&layout, nranks, blocks_bytes,
					      CHUNK_BYTES),
			 0);
		mmc_layout_tabulate(&layout, table, blocks_bytes);
		CHECK(mmc_schedule_bytes(&layout) <= sizeof(memory));
		mmc_schedule_init(&schedule, memory, &layout,
				  (uint32_t)mmc_prng_below(&prng, nranks + 1),
				  window * CHUNK_BYTES, UINT32_MAX);
		if (layout.nchunks > 0)
			check_turns(&schedule);
		nheard = schedule.nchains - (schedule.nchains == layout.nranks);
		CHECK(schedule.window_chunks == 2 ||
		      schedule.window_chunks * nheard <= window);
	}
}

/* There are no more chains than one control message has positions for. */
static void many_ranks(void)
{
	static const uint32_t all[] = { MMC_CHAINS_AUTO, 257, 1000,
					UINT32_MAX };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct mmc_schedule schedule =
			planned(1000, 7, all[i], 1 << 20);
		uint64_t nchunks = 0;

		CHECK_EQ(schedule.nchains, MMC_CHAINS_MAX);
		for (uint32_t c = 0; c < schedule.nchains; c++)
			nchunks += mmc_schedule_length(&schedule, c);
		CHECK_EQ(nchunks, 7000);
	}
}

/* A batch is what the transport and the path suggest, but never beyond half a window. */
static void batches_fit_windows(void)
{
	for (uint32_t window_chunks = 2; window_chunks < 2000;
	     window_chunks += 1 + window_chunks / 3) {
		struct mmc_schedule schedule =
			planned(4, 1000, 4, window_chunks);
		uint32_t half = schedule.window_chunks / 2;

		for (uint32_t batch = 1; batch <= MMC_BATCH_CHUNKS_WIDE;
		     batch++) {
			mmc_schedule_set_batch(&schedule, batch);
			CHECK_EQ(schedule.batch_chunks,
				 half < batch ? half : batch);
		}
	}
}

CHECK_MAIN(CHECK_TEST(batches_fit_windows), CHECK_TEST(every_rank_has_a_turn),
	   CHECK_TEST(empty_blocks), CHECK_TEST(auto_chains),
	   CHECK_TEST(windows), CHECK_TEST(sources_apart),
	   CHECK_TEST(one_sender), CHECK_TEST(uneven_blocks),
	   CHECK_TEST(many_ranks))
