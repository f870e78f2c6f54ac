/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/repair/policy.h"

#define NRANKS_MAX 17

static const struct mmc_repair_policy *policy_of(unsigned repair)
{
	return mmc_repair_policy((enum mmc_repair)repair);
}

/* Asking first choices in turn leads to the owner, so waits form no cycle. */
static void first_choices_end_at_the_owner(void)
{
	for (unsigned repair = 0; repair < 2; repair++)
		for (uint32_t n = 2; n <= NRANKS_MAX; n++)
			for (uint32_t at = 0; at < n * n; at++) {
				uint32_t owner = at % n;
				uint32_t rank = at / n;
				unsigned nhops = 0;

				while (rank != owner && CHECK(nhops++ < n))
					rank = policy_of(repair)->repairer(
						rank, n, owner, 0);
			}
}

/* The rank that is asked serves the asker, and no rank asks itself. */
static void repairers_serve(void)
{
	for (unsigned repair = 0; repair < 2; repair++) {
		const struct mmc_repair_policy *s = policy_of(repair);

		for (uint32_t n = 2; n <= NRANKS_MAX; n++)
			for (uint32_t at = 0; at < n * n * 12; at++) {
				uint32_t nasked = at % 12;
				uint32_t owner = at / 12 % n;
				uint32_t rank = at / 12 / n;
				uint32_t repairer;

				if (rank == owner)
					continue;
				repairer = s->repairer(rank, n, owner, nasked);
				CHECK(repairer < n);
				CHECK(repairer != rank);
				CHECK(s->serves(repairer, n, owner, rank));
			}
	}
}

/* Returns whether one of five requests, `step` apart, goes to the owner. */
static bool asks_owner(const struct mmc_repair_policy *policy, uint32_t rank,
		       uint32_t n, uint32_t first, uint32_t step)
{
	uint32_t owner = (rank + n / 2) % n;

	for (uint32_t k = 0; k < 5; k++)
		if (policy->repairer(rank, n, owner, first + k * step) == owner)
			return true;
	return false;
}

/*
 * Repeated requests reach the owner, whether a chunk is requested in every retry
 * interval or in every second one.
 */
static void owners_are_asked(void)
{
	for (unsigned repair = 0; repair < 2; repair++)
		for (uint32_t n = 2; n <= NRANKS_MAX; n++)
			for (uint32_t rank = 0; rank < n; rank++)
				for (uint32_t first = 0; first < 12; first++)
					for (uint32_t step = 1; step <= 2;
					     step++)
						CHECK(asks_owner(
							policy_of(repair), rank,
							n, first, step));
}

/*
 * Buffers stay until no rank needs them: a policy that releases them when the
 * right neighbour is done serves that neighbour everything.
 */
static void releases(void)
{
	const struct mmc_repair_policy *nak = policy_of(MMC_REPAIR_NAK);
	const struct mmc_repair_policy *neighbour =
		policy_of(MMC_REPAIR_NEIGHBOUR);

	CHECK_EQ(nak->release, MMC_RELEASE_ALL);
	CHECK(nak->gathers);
	CHECK_EQ(neighbour->release, MMC_RELEASE_RIGHT);
	for (uint32_t n = 2; n <= NRANKS_MAX; n++)
		for (uint32_t rank = 0; rank < n; rank++)
			for (uint32_t owner = 0; owner < n; owner++)
				CHECK(neighbour->serves(rank, n, owner,
							(rank + 1) % n));
}

CHECK_MAIN(CHECK_TEST(first_choices_end_at_the_owner),
	   CHECK_TEST(repairers_serve), CHECK_TEST(owners_are_asked),
	   CHECK_TEST(releases))
