/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/grouping.h"

#include "check.h"
#include "support/prng.h"

/*
 * Each chunk is of exactly one group, the one that is found for it; a group has k chunks at
 * most, and lies within a span.
 */
static void every_chunk_has_a_group(void)
{
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned n = 0; n < 300; n++) {
		const struct mmc_grouping grouping = {
			.data_chunks = 1 + (uint32_t)mmc_prng_below(&prng, 40),
			.parity_chunks = (uint32_t)mmc_prng_below(&prng, 9),
			.depth = 1 + (uint32_t)mmc_prng_below(&prng, 8),
		};
		uint32_t nchunks = 1 + (uint32_t)mmc_prng_below(&prng, 900);
		uint32_t ngroups = mmc_grouping_count(&grouping, nchunks);
		uint32_t nfound = 0;

		for (uint32_t g = 0; g < ngroups; g++) {
			const struct mmc_group group =
				mmc_grouping_get(&grouping, nchunks, g);

			CHECK(group.ndata >= 1);
			CHECK(group.ndata <= grouping.data_chunks);
			CHECK(group.nparity <= grouping.parity_chunks);
			CHECK_EQ(group.nparity == 0,
				 grouping.parity_chunks == 0);
			for (uint32_t i = 0; i < group.ndata; i++) {
				uint32_t place = group.first + i * group.stride;

				CHECK(place < nchunks);
				CHECK_EQ(mmc_grouping_find(&grouping, nchunks,
							   place),
					 g);
				CHECK_EQ(mmc_grouping_end(&grouping, nchunks,
							  place),
					 group.end);
			}
			CHECK_EQ(group.last,
				 mmc_grouping_count(&grouping, group.end) ==
					 g + 1);
			nfound += group.ndata;
		}
		CHECK_EQ(nfound, nchunks);
	}
}

/* A burst as long as a span has groups takes one chunk of each. */
static void bursts_are_spread(void)
{
	const struct mmc_grouping grouping = { .data_chunks = 32,
					       .parity_chunks = 4,
					       .depth = 8 };
	uint32_t found = 0;

	for (uint32_t place = 300; place < 308; place++)
		found |= 1u << (mmc_grouping_find(&grouping, 1000, place) - 8);
	CHECK_EQ(found, 0xff);
}

/* The parity of a span fits into half of a window, unless a single group's does not. */
static void depth_follows_the_window(void)
{
	struct mmc_grouping grouping = { .data_chunks = 32,
					 .parity_chunks = 4 };

	mmc_grouping_set_depth(&grouping, 1000);
	CHECK_EQ(grouping.depth, MMC_GROUPING_DEPTH_MAX);
	mmc_grouping_set_depth(&grouping, 24);
	CHECK_EQ(grouping.depth, 3);
	mmc_grouping_set_depth(&grouping, 2);
	CHECK_EQ(grouping.depth, 1);
	grouping.parity_chunks = 0;
	mmc_grouping_set_depth(&grouping, 1000);
	CHECK_EQ(grouping.depth, 1);
	CHECK_EQ(mmc_grouping_window(32, 4, 36000), 32000);
	CHECK_EQ(mmc_grouping_rows(&grouping), 255 - 32);
}

CHECK_MAIN(CHECK_TEST(every_chunk_has_a_group), CHECK_TEST(bursts_are_spread),
	   CHECK_TEST(depth_follows_the_window))
