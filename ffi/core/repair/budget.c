/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/budget.h"

#include "support/bits.h"
#include "support/memory.h"

size_t mmc_budget_bytes(uint32_t nranks)
{
	return nranks * sizeof(uint64_t);
}

void mmc_budget_init(struct mmc_budget *budget, uint8_t *memory,
		     uint32_t nranks, uint64_t now_ns)
{
	budget->asked = (uint64_t *)(void *)memory;
	budget->begin_ns = now_ns;
	memset(memory, 0, mmc_budget_bytes(nranks));
}

uint32_t mmc_budget_take(struct mmc_budget *budget, uint32_t peer,
			 uint32_t count, uint32_t nserved, uint64_t now_ns)
{
	uint64_t times =
		MMC_BUDGET_TIMES + (now_ns - budget->begin_ns) / MMC_BUDGET_NS;
	uint64_t most = times * mmc_max_u32(nserved, MMC_BUDGET_CHUNKS_MIN);
	uint64_t left = most - mmc_min_u64(most, budget->asked[peer]);
	uint32_t taken = (uint32_t)mmc_min_u64(left, count);

	budget->asked[peer] += taken;
	return taken;
}
