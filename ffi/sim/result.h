/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a run, and its result. */
#ifndef MMC_SIM_RESULT_H
#define MMC_SIM_RESULT_H

#include "sim/host.h"
#include "sim/player.h"

struct mmc_run_state {
	struct mmc_stage stage;
	struct mmc_player player; /* of the script, if there is one */
	struct mmc_host *hosts;	  /* [nhosts], one for each rank */
	uint32_t nhosts;	  /* hosts that were opened */
	uint64_t last_arrival_ns; /* time of the last arrival */
	uint64_t narrivals;	  /* datagrams that arrived at hosts */
};

/* Fills `result` from a run that has ended. Returns 0 or -MMC_ENOMEM. */
int mmc_result_fill(struct mmc_sim_result *result, struct mmc_run_state *run);

#endif
