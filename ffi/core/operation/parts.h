/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of carried blocks have come, and which were sent last (carried.h). */
#ifndef MMC_CORE_OPERATION_PARTS_H
#define MMC_CORE_OPERATION_PARTS_H

#include "core/types.h"

struct mmc_parts {
	/* Bit i: part i of the blocks that a round of the barrier brings has arrived. */
	uint32_t arrived[MMC_ROUNDS_MAX];
	/* The rank, or MMC_PEER_ALL, to which parts went, and until when they may arrive. */
	uint32_t lent_peer;
	uint64_t lent_until_ns;
};

#endif
