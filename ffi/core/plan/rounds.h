/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which blocks the rounds of a barrier carry, as in the Allgather of Bruck et al. (1997).
 * In round k a rank has the blocks of the 2^k ranks up to itself, and tells the rank 2^k
 * ahead, which lacks as many of these as are left.
 */
#ifndef MMC_CORE_PLAN_ROUNDS_H
#define MMC_CORE_PLAN_ROUNDS_H

#include "core/plan/layout.h"

/* Returns how many blocks each message of round `round` carries among `nranks` ranks. */
uint32_t mmc_rounds_blocks(uint32_t nranks, unsigned round);

/*
 * Returns whether the rounds can carry the blocks: each rank has one of the same size,
 * and no round brings more than `carried_bytes`.
 */
bool mmc_rounds_carry(const struct mmc_layout *layout, uint32_t carried_bytes);

#endif
