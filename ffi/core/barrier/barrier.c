/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/barrier/barrier.h"

#include "support/assert.h"
#include "support/bits.h"

void mmc_barrier_init(struct mmc_barrier *barrier, uint32_t rank,
		      uint32_t nranks)
{
	*barrier = (struct mmc_barrier){
		.rank = rank,
		.nranks = nranks,
		.nrounds = (uint8_t)mmc_log2_ceil(nranks),
	};
	MMC_ASSERT(barrier->nrounds <= MMC_ROUNDS_MAX);
}

void mmc_barrier_join(struct mmc_barrier *barrier)
{
	barrier->is_in = true;
}

/* Returns the rank that tells this one in round `round`. */
static uint32_t source_of(const struct mmc_barrier *barrier, unsigned round)
{
	uint32_t distance = UINT32_C(1) << round;

	return (barrier->rank + barrier->nranks - distance) % barrier->nranks;
}

bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds)
{
	uint8_t before = barrier->rounds;

	for (unsigned k = 0; k < barrier->nrounds; k++) {
		if (source_of(barrier, k) != source)
			continue;
		barrier->joined |= UINT32_C(1) << k;
		if (rounds >= k)
			barrier->heard |= UINT32_C(1) << k;
	}
	while (barrier->rounds < barrier->nrounds &&
	       (barrier->heard >> barrier->rounds & 1) != 0)
		barrier->rounds++;
	return barrier->rounds != before;
}

bool mmc_barrier_next(struct mmc_barrier *barrier, uint32_t *peer)
{
	uint32_t distance;

	if (!barrier->is_in || barrier->told == barrier->nrounds ||
	    barrier->told > barrier->rounds)
		return false;
	distance = UINT32_C(1) << barrier->told;
	*peer = (barrier->rank + distance) % barrier->nranks;
	barrier->told++;
	return true;
}

uint32_t mmc_barrier_awaited(const struct mmc_barrier *barrier)
{
	MMC_ASSERT(barrier->rounds < barrier->nrounds);
	return source_of(barrier, barrier->rounds);
}

bool mmc_barrier_awaited_has_joined(const struct mmc_barrier *barrier)
{
	return (barrier->joined >> barrier->rounds & 1) != 0;
}
