/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of failures: runs ranks up to a step, and checks how they failed. */
#ifndef MMC_TESTS_FAILURES_H
#define MMC_TESTS_FAILURES_H

#include "ranks.h"

/* Takes up to `nsteps` steps; returns false if the ranks have ended by then. */
static inline bool ranks_step_to(struct ranks *net, uint32_t nsteps)
{
	while (nsteps-- > 0) {
		if (ranks_is_over(net))
			return false;
		CHECK(ranks_step(net));
	}
	return !ranks_is_over(net);
}

/* Checks that all live ranks have failed alike or, with MMC_OK, that none has. */
static inline void ranks_check_failed(const struct ranks *net,
				      enum mmc_error error, uint32_t culprit)
{
	for (uint32_t r = 0; r < net->shape.nranks; r++) {
		const struct mmc_poison *poison = &net->rank[r].epochs.poison;

		if (r == net->shape.dead)
			continue;
		CHECK_EQ(poison->error, error);
		if (error != MMC_OK)
			CHECK_EQ(poison->culprit, culprit);
	}
}

#endif
