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
		.brought = UINT32_MAX,
		.hub = MMC_PEER_NONE,
		.nrounds = (uint8_t)mmc_log2_ceil(nranks),
	};
	MMC_ASSERT(barrier->nrounds <= MMC_ROUNDS_MAX);
}

void mmc_barrier_demand(struct mmc_barrier *barrier)
{
	barrier->brought = 0;
}

void mmc_barrier_make_star(struct mmc_barrier *barrier, uint32_t hub)
{
	barrier->hub = hub;
	barrier->nrounds = hub == barrier->rank ? 0 : 1;
	barrier->told = barrier->nrounds;
}

void mmc_barrier_join(struct mmc_barrier *barrier)
{
	barrier->is_in = true;
}

/* Returns the rank that tells this one in round `round`. */
static uint32_t source_of(const struct mmc_barrier *barrier, unsigned round)
{
	uint32_t distance = UINT32_C(1) << round;

	if (barrier->hub != MMC_PEER_NONE)
		return barrier->hub;
	return (barrier->rank + barrier->nranks - distance) % barrier->nranks;
}

/* Counts the rounds that are complete. Returns whether there are more than before. */
static bool advance(struct mmc_barrier *barrier)
{
	uint32_t complete = barrier->heard & barrier->brought;
	uint8_t before = barrier->rounds;

	while (barrier->rounds < barrier->nrounds &&
	       (complete >> barrier->rounds & 1) != 0)
		barrier->rounds++;
	return barrier->rounds != before;
}

bool mmc_barrier_hear(struct mmc_barrier *barrier, uint32_t source,
		      uint32_t rounds)
{
	for (unsigned k = 0; k < barrier->nrounds; k++) {
		if (source_of(barrier, k) != source)
			continue;
		barrier->joined |= UINT32_C(1) << k;
		if (rounds >= k)
			barrier->heard |= UINT32_C(1) << k;
	}
	return advance(barrier);
}

unsigned mmc_barrier_round(const struct mmc_barrier *barrier, uint32_t source,
			   uint32_t target)
{
	uint32_t distance;

	if (barrier->hub != MMC_PEER_NONE)
		return source == barrier->hub && target != source
			       ? 0
			       : MMC_ROUNDS_MAX;
	distance = (target + barrier->nranks - source) % barrier->nranks;
	for (unsigned k = 0; k < barrier->nrounds; k++)
		if (distance == UINT32_C(1) << k)
			return k;
	return MMC_ROUNDS_MAX;
}

bool mmc_barrier_bring(struct mmc_barrier *barrier, uint32_t source)
{
	unsigned round = mmc_barrier_round(barrier, source, barrier->rank);

	if (round < barrier->nrounds)
		barrier->brought |= UINT32_C(1) << round;
	return advance(barrier);
}

bool mmc_barrier_bring_all(struct mmc_barrier *barrier)
{
	barrier->brought = UINT32_MAX;
	return advance(barrier);
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
