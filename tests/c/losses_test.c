/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/losses.h"

#include "check.h"
#include "support/prng.h"

#define SHARE(one_in) (UINT32_C(0xffffffff) / (one_in))

/* Returns whether the share is one in `one_in`, but for one in a hundred of that. */
static bool is_about(const struct mmc_losses *losses, uint32_t one_in)
{
	uint32_t share = mmc_losses_share(losses, 1);

	return share > SHARE(one_in) / 100 * 99 &&
	       share < SHARE(one_in) / 100 * 101;
}

/* The share is that of the chunks, and runs are as long as they are as a mean. */
static void shares_and_runs(void)
{
	struct mmc_losses losses = { 0 };

	CHECK_EQ(mmc_losses_run_chunks(&losses), 1);
	mmc_losses_add(&losses, &(struct mmc_losses){ 100000, 1000, 400 });
	CHECK(is_about(&losses, 100));
	CHECK_EQ(mmc_losses_run_chunks(&losses), 3);
	mmc_losses_add(&losses, &(struct mmc_losses){ 100000, 0, 0 });
	CHECK(is_about(&losses, 200));
	losses = (struct mmc_losses){ MMC_LOSSES_CHUNKS_MAX,
				      MMC_LOSSES_CHUNKS_MAX, 1 };
	CHECK(mmc_losses_share(&losses, 1) > SHARE(1) / 100 * 99);
}

/* Nothing is known at first; a single loss, or some hundred chunks without, tell much. */
static void the_prior_is_forgotten(void)
{
	struct mmc_losses losses = { 0 };

	CHECK_EQ(mmc_losses_share(&losses, 1), (UINT64_C(1) << 32) / 640);
	losses = (struct mmc_losses){ 1000, 0, 0 };
	CHECK(mmc_losses_share(&losses, 1) < SHARE(8000));
	/* What others were sent without a loss counts as well. */
	losses = (struct mmc_losses){ 10, 0, 0 };
	CHECK(mmc_losses_share(&losses, 100) < SHARE(8000));
	losses = (struct mmc_losses){ 20, 1, 1 };
	CHECK(mmc_losses_share(&losses, 1) > SHARE(100));
	CHECK(mmc_losses_share(&losses, 1) < SHARE(20));
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
	CHECK(mmc_losses_share(&losses, 1) > SHARE(55));
	CHECK(mmc_losses_share(&losses, 1) < SHARE(45));
	CHECK_EQ(mmc_losses_run_chunks(&losses), 1);
	for (unsigned i = 0; i < 4000; i++)
		mmc_losses_add(&losses, &(struct mmc_losses){ 1000, 0, 0 });
	CHECK(mmc_losses_share(&losses, 1) < SHARE(1000000));
}

CHECK_MAIN(CHECK_TEST(shares_and_runs), CHECK_TEST(the_prior_is_forgotten),
	   CHECK_TEST(follows_the_network))
