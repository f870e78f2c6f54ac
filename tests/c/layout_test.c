/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/plan/layout.h"
#include "support/prng.h"

#define NRANKS_MAX 9

/* Checks that the chunks, in order, tile the blocks exactly. */
static void check_chunks(const struct mmc_layout *layout)
{
	uint64_t end_bytes = 0;

	for (uint32_t chunk = 0; chunk < layout->nchunks; chunk++) {
		uint32_t owner = mmc_layout_owner(layout, chunk);
		const struct mmc_block block = mmc_layout_block(layout, owner);
		uint32_t payload = mmc_layout_payload(layout, chunk);

		CHECK(owner < layout->nranks);
		CHECK(chunk - block.first < block.nchunks);
		CHECK(payload >= 1);
		CHECK(payload <= layout->chunk_bytes);
		CHECK_EQ(mmc_layout_offset(layout, chunk), end_bytes);
		CHECK(end_bytes >= block.offset_bytes);
		end_bytes += payload;
		CHECK(end_bytes <= block.offset_bytes + block.nbytes);
	}
	CHECK_EQ(end_bytes, layout->total_bytes);
}

/* Checks that the blocks are adjacent, and that only ranks with one are senders. */
static void check_blocks(const struct mmc_layout *layout,
			 const uint64_t *blocks_bytes)
{
	uint64_t offset_bytes = 0;
	uint32_t nsenders = 0;
	uint32_t first = 0;

	for (uint32_t r = 0; r < layout->nranks; r++) {
		const struct mmc_block block = mmc_layout_block(layout, r);

		CHECK_EQ(block.nbytes, blocks_bytes[r]);
		CHECK_EQ(block.offset_bytes, offset_bytes);
		CHECK_EQ(block.first, first);
		offset_bytes += block.nbytes;
		first += block.nchunks;
		if (block.nbytes == 0 && !layout->equal) {
			CHECK_EQ(block.nchunks, 0);
			CHECK_EQ(block.number, 0);
			continue;
		}
		CHECK_EQ(block.number, nsenders);
		CHECK_EQ(mmc_layout_sender(layout, nsenders++), r);
	}
	CHECK_EQ(layout->nchunks, first);
	CHECK_EQ(layout->nsenders, nsenders);
	CHECK_EQ(layout->total_bytes, offset_bytes);
	check_chunks(layout);
}

static void check_tiling(uint32_t nranks, uint64_t block_bytes,
			 uint32_t chunk_bytes)
{
	uint64_t blocks_bytes[NRANKS_MAX];
	struct mmc_layout layout;

	for (uint32_t r = 0; r < nranks; r++)
		blocks_bytes[r] = block_bytes;
	CHECK_EQ(mmc_layout_init(&layout, nranks, block_bytes, chunk_bytes), 0);
	CHECK(layout.equal);
	check_blocks(&layout, blocks_bytes);
	CHECK_EQ(mmc_layout_init_each(&layout, nranks, blocks_bytes,
				      chunk_bytes),
		 0);
	CHECK(layout.equal);
	CHECK_EQ(mmc_layout_bytes(&layout), 0);
	check_blocks(&layout, blocks_bytes);
}

static void tiles_exactly(void)
{
	static const uint32_t chunks_bytes[] = { 1, 2, 3, 16, 1456 };

	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (unsigned c = 0; c < 5; c++) {
			uint32_t chunk_bytes = chunks_bytes[c];

			for (uint64_t n = 0; n <= 3; n++) {
				uint64_t block_bytes = n * chunk_bytes;

				check_tiling(nranks, block_bytes, chunk_bytes);
				check_tiling(nranks, block_bytes + 1,
					     chunk_bytes);
				if (block_bytes > 0)
					check_tiling(nranks, block_bytes - 1,
						     chunk_bytes);
			}
		}
}

/* Any rank may be the only sender, as the root of a Bcast is. */
static void one_sender(void)
{
	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t root = 0; root < nranks; root++)
			for (uint64_t nbytes = 0; nbytes <= 50; nbytes++) {
				uint64_t blocks_bytes[NRANKS_MAX] = { 0 };
				struct mmc_layout layout;

				blocks_bytes[root] = nbytes;
				CHECK_EQ(mmc_layout_init_sole(&layout, nranks,
							      root, nbytes, 16),
					 0);
				CHECK_EQ(mmc_layout_bytes(&layout), 0);
				check_blocks(&layout, blocks_bytes);
			}
}

/* Chunks tile blocks of random, uneven sizes exactly. */
static void uneven(void)
{
	_Alignas(16) uint8_t table[NRANKS_MAX * 64];
	struct mmc_prng prng = { .state = check_seed() };
	uint64_t blocks_bytes[NRANKS_MAX];
	struct mmc_layout layout;

	for (int i = 0; i < 20000; i++) {
		uint32_t nranks = 1 + (uint32_t)mmc_prng_below(&prng, 9);
		uint32_t chunk_bytes = 1 + (uint32_t)mmc_prng_below(&prng, 20);

		for (uint32_t r = 0; r < nranks; r++)
			blocks_bytes[r] = mmc_prng_below(&prng, 3) *
					  mmc_prng_below(&prng, 50);
		CHECK_EQ(mmc_layout_init_each(&layout, nranks, blocks_bytes,
					      chunk_bytes),
			 0);
		if (!CHECK(mmc_layout_bytes(&layout) <= sizeof(table)))
			return;
		mmc_layout_tabulate(&layout, table, blocks_bytes);
		check_blocks(&layout, blocks_bytes);
	}
}

/* A block of a whole number of chunks has no chunk of 0 bytes at its end. */
static void counts(void)
{
	struct mmc_layout layout;

	CHECK_EQ(mmc_layout_init(&layout, 3, 0, 10), 0);
	CHECK_EQ(layout.nchunks, 0);
	CHECK_EQ(mmc_layout_init(&layout, 3, 30, 10), 0);
	CHECK_EQ(layout.block_chunks, 3);
	CHECK_EQ(layout.tail_bytes, 10);
	CHECK_EQ(mmc_layout_init(&layout, 3, 31, 10), 0);
	CHECK_EQ(layout.block_chunks, 4);
	CHECK_EQ(layout.tail_bytes, 1);
	CHECK_EQ(mmc_layout_init(&layout, 1, 5, UINT32_MAX), 0);
	CHECK_EQ(layout.block_chunks, 1);
	CHECK_EQ(layout.tail_bytes, 5);
}

static void check_refused(uint32_t nranks, uint64_t block_bytes,
			  uint32_t chunk_bytes)
{
	struct mmc_layout layout = { .nchunks = 77 };

	CHECK_EQ(mmc_layout_init(&layout, nranks, block_bytes, chunk_bytes),
		 -MMC_EINVAL);
	CHECK_EQ(layout.nchunks, 77);
}

/*
 * Checks that two blocks of these sizes are refused. If the first is empty, checks that
 * the second is also refused as the only block.
 */
static void check_each_refused(uint64_t first_bytes, uint64_t other_bytes,
			       uint32_t chunk_bytes)
{
	const uint64_t blocks_bytes[] = { first_bytes, other_bytes };
	struct mmc_layout layout = { .nchunks = 77 };
	uint32_t nranks = other_bytes == 0 ? 0 : 2;

	CHECK_EQ(mmc_layout_init_each(&layout, nranks, blocks_bytes,
				      chunk_bytes),
		 -MMC_EINVAL);
	CHECK_EQ(layout.nchunks, 77);
	if (first_bytes != 0 || other_bytes == 0 || chunk_bytes == 0)
		return;
	CHECK_EQ(mmc_layout_init_sole(&layout, 2, 1, other_bytes, chunk_bytes),
		 -MMC_EINVAL);
	CHECK_EQ(layout.nchunks, 77);
}

/*
 * A layout with no ranks, empty chunks or too many chunks is refused and not written.
 */
static void refuses(void)
{
	check_refused(0, 10, 10);
	check_refused(1, 10, 0);
	check_refused(0, 0, 0);
	check_refused(1, (uint64_t)MMC_CHUNKS_MAX + 1, 1);
	check_refused(1, (uint64_t)MMC_CHUNKS_MAX * 7 + 1, 7);
	check_refused(2, MMC_CHUNKS_MAX / 2 + 1, 1);
	check_refused(3, MMC_CHUNKS_MAX / 3 + 1, 1);
	check_refused(MMC_CHUNKS_MAX + 1, 1, 1);
	check_refused(UINT32_MAX, 1, 1);
	check_refused(1, UINT64_MAX, 1);
	check_refused(UINT32_MAX, UINT64_MAX, 1);
	check_refused(1, UINT64_MAX, 1000);
	check_each_refused(0, 0, 1);
	check_each_refused(0, 10, 0);
	check_each_refused(MMC_CHUNKS_MAX, 1, 1);
	check_each_refused(1, MMC_CHUNKS_MAX, 1);
	check_each_refused(MMC_CHUNKS_MAX, MMC_CHUNKS_MAX + UINT64_C(1), 1);
	check_each_refused(0, UINT64_MAX, 1);
	check_each_refused(UINT64_MAX, UINT64_MAX, 8000);
}

/* Offsets beyond 32 bits and 2^30 chunks are laid out exactly. */
static void largest(void)
{
	struct mmc_layout layout;
	uint64_t block_bytes = (uint64_t)MMC_CHUNKS_MAX / 4 * 8000;

	CHECK_EQ(mmc_layout_init(&layout, 4, block_bytes, 8000), 0);
	CHECK_EQ(layout.nchunks, MMC_CHUNKS_MAX);
	CHECK_EQ(mmc_layout_owner(&layout, MMC_CHUNKS_MAX - 1), 3);
	CHECK_EQ(mmc_layout_init_sole(&layout, 4, 3, 4 * block_bytes, 8000), 0);
	CHECK_EQ(layout.nchunks, MMC_CHUNKS_MAX);
	CHECK_EQ(mmc_layout_offset(&layout, MMC_CHUNKS_MAX - 1),
		 4 * block_bytes - 8000);
	CHECK_EQ(mmc_layout_init(&layout, 4, block_bytes, 8000), 0);
	CHECK_EQ(mmc_layout_offset(&layout, MMC_CHUNKS_MAX - 1),
		 4 * block_bytes - 8000);
	CHECK_EQ(mmc_layout_init(&layout, MMC_CHUNKS_MAX, 1, 1), 0);
	CHECK_EQ(layout.nchunks, MMC_CHUNKS_MAX);
	CHECK_EQ(mmc_layout_init(&layout, UINT32_MAX, 0, 1), 0);
	CHECK_EQ(layout.nchunks, 0);
	CHECK_EQ(mmc_layout_init(&layout, 1, UINT64_C(1) << 60, UINT32_MAX), 0);
	CHECK_EQ(mmc_layout_offset(&layout, layout.nchunks - 1) +
			 layout.tail_bytes,
		 UINT64_C(1) << 60);
}

CHECK_MAIN(CHECK_TEST(tiles_exactly), CHECK_TEST(one_sender),
	   CHECK_TEST(uneven), CHECK_TEST(counts), CHECK_TEST(refuses),
	   CHECK_TEST(largest))
