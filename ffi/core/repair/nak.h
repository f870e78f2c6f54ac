/* SPDX-License-Identifier: BSD-3-Clause */
/* A negative acknowledgement: the chunks that one rank asks another for. */
#ifndef MMC_CORE_REPAIR_NAK_H
#define MMC_CORE_REPAIR_NAK_H

#include "core/types.h"

struct mmc_nak {
	uint32_t peer; /* the rank that is asked; at that rank, the asker */
	bool direct;   /* to be answered by unicast, to the asker alone */
	uint32_t nruns;
	struct mmc_run runs[MMC_RUNS_MAX];
};

#endif
