/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's advert: the memory that its right neighbour may read in one operation.
 * Addresses and keys are the transport's. What a read brings is the operation's only if
 * the generation in that memory, read last, is the advert's.
 */
#ifndef MMC_CORE_WIRE_ADVERT_H
#define MMC_CORE_WIRE_ADVERT_H

#include "core/types.h"

/* The generation takes this much memory, right before the words of the bitmap. */
#define MMC_GENERATION_BYTES 8

struct mmc_advert {
	uint64_t generation;   /* 0: nothing can be read, now or later */
	uint64_t map_address;  /* the words of the bitmap `present` */
	uint64_t data_address; /* all blocks in rank order */
	uint32_t map_key;      /* grants access to the bitmap */
	uint32_t data_key;     /* grants access to the blocks */
	bool has_data; /* whether bitmap and blocks can be read already */
};

#endif
