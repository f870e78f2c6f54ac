/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/losses.h"

#include "check.h"
#include "support/prng.h"

#define SHARE(one_in) (UINT32_C(0xffffffff) / (one_in))

/* The share is that of the chunks, and runs are as long as they are as a mean. */
static void shares_and_runs(void)
{
	struct mmc_losses losses = { 0 };

	CHECK_EQ(mmc_losses_share(&losses), 0);
	CHECK_EQ(mmc_losses_run_chunks(&losses), 1);
	mmc_losses_add(&losses, &(struct mmc_losses){ 1000, 10, 4 });
	CHECK_EQ(mmc_losses_share(&losses), SHARE(100));
	CHECK_EQ(mmc_losses_run_chunks(&losses), 3);
	mmc_losses_add(&losses, &(struct mmc_losses){ 1000, 0, 0 });
	CHECK_EQ(mmc_losses_share(&losses), SHARE(200));
	/* All lost is the most that the share can say. */
	losses = (struct mmc_losses){ 5, 5, 1 };
	CHECK_EQ(mmc_losses_share(&losses), UINT32_MAX);
}

/* Independent losses are counted right, and old ones are forgotten by and by. */
static void follows_the_network(void)
{
	struct mmc_prng prng = { .state = check_seed() };
	struct mmc_losses losses = { 0 };

	for (unsigned i = 0; i < 2000; i++) {
		struct mmc_losses more = { .sent_chunks = 1000 };

		for (unsigned c = 0; c < 1000; c++)
			more.lost_chunks += mmc_prng_below(&prng, 50) == 0;
		more.nruns = more.lost_chunks;
		mmc_losses_add(&losses, &more);
		CHECK(losses.sent_chunks <= MMC_LOSSES_CHUNKS_MAX);
	}
	CHECK(mmc_losses_share(&losses) > SHARE(55));
	CHECK(mmc_losses_share(&losses) < SHARE(45));
	CHECK_EQ(mmc_losses_run_chunks(&losses), 1);
	for (unsigned i = 0; i < 4000; i++)
		mmc_losses_add(&losses, &(struct mmc_losses){ 1000, 0, 0 });
	CHECK_EQ(mmc_losses_share(&losses), 0);
}

CHECK_MAIN(CHECK_TEST(shares_and_runs), CHECK_TEST(follows_the_network))
