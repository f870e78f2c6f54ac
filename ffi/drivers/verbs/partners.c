/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/partners.h"

#include "support/assert.h"
#include "support/bits.h"

/*
 * Appends `partner` to the `count` entries of `partners`, unless it is already there.
 * A rank may be a partner in both directions: among four ranks, the rank that is two
 * ranks ahead is also two ranks behind. Returns the new number of entries.
 */
static uint32_t add_once(uint32_t *partners, uint32_t count, uint32_t partner)
{
	for (uint32_t i = 0; i < count; i++)
		if (partners[i] == partner)
			return count;
	partners[count] = partner;
	return count + 1;
}

uint32_t mmc_verbs_partners(uint32_t rank, uint32_t nranks, uint32_t *partners)
{
	uint32_t nrounds = mmc_log2_ceil(nranks);
	uint32_t count = 0;

	for (uint32_t k = 0; k < nrounds; k++) {
		uint32_t distance = UINT32_C(1) << k;

		count = add_once(partners, count, (rank + distance) % nranks);
		count = add_once(partners, count,
				 (rank + nranks - distance) % nranks);
	}
	return count;
}

uint32_t mmc_verbs_partner_index(uint32_t rank, uint32_t nranks,
				 uint32_t partner)
{
	uint32_t partners[MMC_VERBS_PARTNERS_MAX];
	uint32_t count = mmc_verbs_partners(rank, nranks, partners);
	uint32_t i = 0;

	while (i < count && partners[i] != partner)
		i++;
	MMC_ASSERT(i < count);
	return i;
}
