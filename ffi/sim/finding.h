/* SPDX-License-Identifier: BSD-3-Clause */
/* A finding: the first violation of a run, as a sentence. */
#ifndef MMC_SIM_FINDING_H
#define MMC_SIM_FINDING_H

#include <mpimcast/sim.h>
#include <stdbool.h>

struct mmc_finding {
	char text[MMC_SIM_TEXT_SIZE]; /* "" while nothing is violated */
};

static inline bool mmc_finding_exists(const struct mmc_finding *finding)
{
	return finding->text[0] != 0;
}

/* Records a violation at the virtual time `now_ns`, unless there is one already. */
__attribute__((format(printf, 3, 4))) void
mmc_finding_add(struct mmc_finding *finding, uint64_t now_ns,
		const char *format, ...);

#endif
