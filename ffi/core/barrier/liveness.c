/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/barrier/liveness.h"

void mmc_liveness_note_late(struct mmc_liveness *liveness, uint32_t rank,
			    uint64_t at_ns, bool awaited)
{
	uint64_t seen_ns = mmc_min_u64(at_ns, liveness->observed_ns);
	uint64_t age_ns = liveness->observed_ns - seen_ns;

	if (liveness->late_rank == MMC_PEER_NONE || at_ns > liveness->late_ns) {
		liveness->late_rank = rank;
		liveness->late_ns = seen_ns;
	}
	liveness->unexplained_ns =
		mmc_min_u64(liveness->unexplained_ns, age_ns);
	if (awaited)
		liveness->unproven_ns =
			mmc_min_u64(liveness->unproven_ns, age_ns);
}
