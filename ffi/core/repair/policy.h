/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies by which chunks that multicast lost are fetched. All share how losses
 * are detected and when to ask (loss.h), and how a repairer answers (repairer.h); a
 * policy says which rank is asked and when buffers are free.
 */
#ifndef MMC_CORE_REPAIR_POLICY_H
#define MMC_CORE_REPAIR_POLICY_H

#include "core/types.h"

/* When a rank may give its buffers back. */
enum mmc_release {
	MMC_RELEASE_ALL,   /* all ranks are done, or it keeps a copy */
	MMC_RELEASE_RIGHT, /* its right neighbour is done */
};

struct mmc_repair_policy {
	const char *name;

	/*
	 * Returns the rank that `rank` asks for chunks of `owner`'s block after
	 * `nasked` earlier requests. For one chunk, the first choices of all ranks
	 * always lead to its owner, so waiting for them is acyclic.
	 */
	uint32_t (*repairer)(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked);

	/* Returns whether `rank` serves chunks of `owner`'s block to `asker`. */
	bool (*serves)(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker);

	/* A repairer waits for further requests and answers several by multicast. */
	bool gathers;

	/* Chunks are read from the left neighbour's memory (fetcher.h). */
	bool reads;

	enum mmc_release release;
};

/* Returns the policy of a setting, one of enum mmc_repair. */
const struct mmc_repair_policy *mmc_repair_policy(enum mmc_repair repair);

#endif
