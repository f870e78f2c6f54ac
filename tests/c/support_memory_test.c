/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of reserved memory are aligned and disjoint, and fill it. */
#include "support/memory.h"

#include "check.h"

/* A part takes the least number of aligned units that holds it. */
static void whole_units(void)
{
	for (size_t nbytes = 0; nbytes < 1000; nbytes++) {
		size_t part_bytes = mmc_part_bytes(nbytes);

		CHECK_EQ(part_bytes % MMC_ALIGN_BYTES, 0);
		CHECK(part_bytes >= nbytes);
		CHECK(part_bytes < nbytes + MMC_ALIGN_BYTES);
	}
}

/* Parts that are taken in turn adjoin, and fill the whole. */
static void adjoining_parts(void)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 0, 32 };
	enum { NPARTS = sizeof(sizes) / sizeof(*sizes) };
	size_t block_bytes = 0;
	uint8_t *block;
	uint8_t *end;

	for (unsigned i = 0; i < NPARTS; i++)
		block_bytes += mmc_part_bytes(sizes[i]);
	block = aligned_alloc(MMC_ALIGN_BYTES, block_bytes);
	end = block;
	for (unsigned i = 0; i < NPARTS; i++) {
		uint8_t *next = end;
		uint8_t *part = mmc_part_take(&end, sizes[i]);

		CHECK(part == next);
		CHECK_EQ((uintptr_t)part % MMC_ALIGN_BYTES, 0);
		memset(part, (int)i + 1, sizes[i]);
	}
	CHECK(end == block + block_bytes);
	free(block);
}

CHECK_MAIN(CHECK_TEST(whole_units), CHECK_TEST(adjoining_parts))
