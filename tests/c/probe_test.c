/* SPDX-License-Identifier: BSD-3-Clause */
/* No more ranks probe at a time than every receive queue has room for. */
#include "engine/probe.h"

#include "check.h"

static void few_probe_at_once(void)
{
	for (uint32_t nranks = 1; nranks <= MMC_PROBE_RANKS; nranks++)
		for (uint32_t rank = 0; rank < nranks; rank++)
			for (uint32_t copy = 0; copy < 3; copy++)
				CHECK_EQ(mmc_probe_offset_ns(rank, nranks,
							     copy),
					 0);
}

/*
 * In the order of copies and ranks, times never decrease, and no more ranks
 * than MMC_PROBE_RANKS share one.
 */
static void many_probe_in_groups(void)
{
	static const uint32_t sizes[] = { 65, 128, 129, 1000, 10007, 1 << 20 };

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		uint64_t last_ns = 0;
		uint32_t nat_once = 0;

		for (uint32_t copy = 0; copy < 3; copy++)
			for (uint32_t rank = 0; rank < sizes[s]; rank++) {
				uint64_t at_ns = mmc_probe_offset_ns(
					rank, sizes[s], copy);

				CHECK(at_ns >= last_ns);
				nat_once = at_ns == last_ns ? nat_once + 1 : 1;
				CHECK(nat_once <= MMC_PROBE_RANKS);
				last_ns = at_ns;
			}
		/* All begin within 4 ms and a tenth of a millisecond for each rank. */
		CHECK(last_ns <= 4 * MMC_MS_NS + sizes[s] * 100 * MMC_US_NS);
	}
}

CHECK_MAIN(CHECK_TEST(few_probe_at_once), CHECK_TEST(many_probe_in_groups))
