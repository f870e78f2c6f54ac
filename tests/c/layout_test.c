/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/layout.h"

/* Whether the chunks, in order, tile the blocks exactly. */
static void check_tiling(uint32_t nranks, uint64_t block_bytes,
			 uint32_t chunk_bytes)
{
	struct mmc_layout layout;
	uint64_t end_bytes = 0;

	CHECK_EQ(mmc_layout_init(&layout, nranks, block_bytes, chunk_bytes), 0);
	CHECK_EQ(layout.nranks, nranks);
	CHECK_EQ(layout.nchunks, nranks * layout.block_chunks);
	for (uint32_t chunk = 0; chunk < layout.nchunks; chunk++) {
		uint32_t owner = mmc_layout_owner(&layout, chunk);
		uint32_t index = chunk - mmc_layout_first(&layout, owner);
		uint32_t payload = mmc_layout_payload(&layout, index);

		CHECK(owner < nranks);
		CHECK(index < layout.block_chunks);
		CHECK(payload >= 1);
		CHECK(payload <= chunk_bytes);
		CHECK_EQ(mmc_layout_offset(&layout, chunk), end_bytes);
		CHECK(end_bytes >= owner * block_bytes);
		end_bytes += payload;
		CHECK(end_bytes <= (owner + 1) * block_bytes);
	}
	CHECK_EQ(end_bytes, nranks * block_bytes);
}

static void tiles_exactly(void)
{
	static const uint32_t chunks_bytes[] = { 1, 2, 3, 16, 1456 };

	for (uint32_t nranks = 1; nranks <= 9; nranks++)
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
}

/* The largest operations: offsets beyond 32 bits, indices up to 2^30. */
static void largest(void)
{
	struct mmc_layout layout;
	uint64_t block_bytes = (uint64_t)MMC_CHUNKS_MAX / 4 * 8000;

	CHECK_EQ(mmc_layout_init(&layout, 4, block_bytes, 8000), 0);
	CHECK_EQ(layout.nchunks, MMC_CHUNKS_MAX);
	CHECK_EQ(mmc_layout_owner(&layout, MMC_CHUNKS_MAX - 1), 3);
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

CHECK_MAIN(CHECK_TEST(tiles_exactly), CHECK_TEST(counts), CHECK_TEST(refuses),
	   CHECK_TEST(largest))
