/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many chunks other ranks may ask for in one operation. A rank can lack each chunk
 * that this one serves to it, and asks for it again ever more rarely, in the end once in
 * 20 ms. So some multiple of these chunks, which grows with time, is more than any rank
 * asks for, and whoever asks for more does so to keep this rank and the network busy.
 */
#ifndef MMC_CORE_REPAIR_BUDGET_H
#define MMC_CORE_REPAIR_BUDGET_H

#include "core/types.h"

/*
 * A rank may ask for each chunk MMC_BUDGET_TIMES times at first, and once more in each
 * MMC_BUDGET_NS.
 */
#define MMC_BUDGET_TIMES 16
#define MMC_BUDGET_NS (20 * MMC_MS_NS)

/* Fewer chunks count as this many: they are asked for again after each reply of others. */
#define MMC_BUDGET_CHUNKS_MIN 64

struct mmc_budget {
	uint64_t *asked; /* [nranks] the chunks that each rank has asked for */
	uint64_t begin_ns;
};

/* Returns the bytes of memory that the budget of `nranks` ranks takes. */
size_t mmc_budget_bytes(uint32_t nranks);

/* Initializes `budget` in `memory`, mmc_budget_bytes() long. */
void mmc_budget_init(struct mmc_budget *budget, uint8_t *memory,
		     uint32_t nranks, uint64_t now_ns);

/*
 * Takes the request of `peer` for `count` of the `nserved` chunks that this rank serves
 * to it. Returns how many of them to answer.
 */
uint32_t mmc_budget_take(struct mmc_budget *budget, uint32_t peer,
			 uint32_t count, uint32_t nserved, uint64_t now_ns);

#endif
