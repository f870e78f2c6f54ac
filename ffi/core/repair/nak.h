/* SPDX-License-Identifier: BSD-3-Clause */
/* A NAK, or negative acknowledgement: the chunks that one rank asks another for. */
#ifndef MMC_CORE_REPAIR_NAK_H
#define MMC_CORE_REPAIR_NAK_H

#include "core/types.h"

struct mmc_nak {
	/* On the rank that sends the NAK the receiver, on the receiver the sender. */
	uint32_t peer;
	bool direct; /* to be answered by unicast, to its sender alone */
	uint32_t nruns;
	struct mmc_run runs[MMC_RUNS_MAX];
};

#endif
