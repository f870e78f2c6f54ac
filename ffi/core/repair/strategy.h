/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The strategies by which chunks that multicast lost are fetched. What is
 * missing and when to ask is the same for all (loss.h), likewise how a repairer
 * answers (repairer.h); a strategy says who asks whom and when buffers are free.
 */
#ifndef MMC_CORE_REPAIR_STRATEGY_H
#define MMC_CORE_REPAIR_STRATEGY_H

#include "core/types.h"

/* When a rank may give its buffers back. */
enum mmc_release {
	MMC_RELEASE_ALL,   /* all ranks are done, or it keeps a copy */
	MMC_RELEASE_RIGHT, /* its right neighbour is done */
};

struct mmc_repair_strategy {
	const char *name;

	/*
	 * Whom `rank` asks for chunks of `owner`'s block when it has asked
	 * `nasked` times before. Following the first choices of all ranks for
	 * one chunk always ends at its owner, so waiting for them is acyclic.
	 */
	uint32_t (*repairer)(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked);

	/* Whether `rank` serves chunks of `owner`'s block to `asker`. */
	bool (*serves)(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker);

	/* A repairer waits for further askers and answers several by multicast. */
	bool gathers;

	/* What the left neighbour has is read from its memory (fetcher.h). */
	bool reads;

	enum mmc_release release;
};

/* The strategy of a setting, which is one of enum mmc_repair. */
const struct mmc_repair_strategy *mmc_repair_strategy(enum mmc_repair repair);

#endif
