/* SPDX-License-Identifier: BSD-3-Clause */
/* A completion queue that can tell whether it has a completion without losing it. */
#ifndef MMC_DRIVERS_VERBS_COMPLETIONS_H
#define MMC_DRIVERS_VERBS_COMPLETIONS_H

#include <stdbool.h>

#include "drivers/verbs/dl.h"

struct mmc_verbs_completions {
	struct ibv_cq *queue;
	/*
	 * If `peeked`, the first completion: a peek has moved it here from the queue,
	 * and it was not taken yet.
	 */
	struct ibv_wc first;
	bool peeked;
};

/* Returns whether there is a completion, and leaves it there. */
static inline bool
mmc_verbs_completions_peek(struct mmc_verbs_completions *completions)
{
	if (!completions->peeked)
		completions->peeked = ibv_poll_cq(completions->queue, 1,
						  &completions->first) > 0;
	return completions->peeked;
}

/*
 * Takes up to `nmax` completions, at least one, and writes them to `found`. Returns
 * their number, or a negative number after an error.
 */
static inline int
mmc_verbs_completions_take(struct mmc_verbs_completions *completions,
			   struct ibv_wc *found, unsigned nmax)
{
	if (!completions->peeked)
		return ibv_poll_cq(completions->queue, (int)nmax, found);
	*found = completions->first;
	completions->peeked = false;
	return 1;
}

#endif
