/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/barrier.h"

#include "core/assert.h"
#include "core/bits.h"

void mmc_gate_init(struct mmc_gate *gate, uint32_t rank, uint32_t nranks)
{
	*gate = (struct mmc_gate){
		.rank = rank,
		.nranks = nranks,
		.nrounds = (uint8_t)mmc_log2_ceil(nranks),
	};
	MMC_ASSERT(gate->nrounds <= MMC_ROUNDS_MAX);
}

void mmc_gate_join(struct mmc_gate *gate)
{
	gate->open = true;
}

/* The rank that tells this one in round `round`. */
static uint32_t source_of(const struct mmc_gate *gate, unsigned round)
{
	uint32_t distance = UINT32_C(1) << round;

	return (gate->rank + gate->nranks - distance) % gate->nranks;
}

bool mmc_gate_hear(struct mmc_gate *gate, uint32_t source, uint32_t rounds)
{
	uint8_t before = gate->rounds;

	for (unsigned k = 0; k < gate->nrounds; k++) {
		if (source_of(gate, k) != source)
			continue;
		gate->joined |= UINT32_C(1) << k;
		if (rounds >= k)
			gate->heard |= UINT32_C(1) << k;
	}
	while (gate->rounds < gate->nrounds &&
	       (gate->heard >> gate->rounds & 1) != 0)
		gate->rounds++;
	return gate->rounds != before;
}

bool mmc_gate_next(struct mmc_gate *gate, uint32_t *peer)
{
	uint32_t distance;

	if (!gate->open || gate->told == gate->nrounds ||
	    gate->told > gate->rounds)
		return false;
	distance = UINT32_C(1) << gate->told;
	*peer = (gate->rank + distance) % gate->nranks;
	gate->told++;
	return true;
}

uint32_t mmc_gate_awaited(const struct mmc_gate *gate)
{
	MMC_ASSERT(gate->rounds < gate->nrounds);
	return source_of(gate, gate->rounds);
}

bool mmc_gate_awaited_joined(const struct mmc_gate *gate)
{
	return (gate->joined >> gate->rounds & 1) != 0;
}
