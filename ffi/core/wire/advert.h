/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank publishes of its memory in one operation, for its right neighbour
 * to read. Addresses and keys are the transport's. What was read of memory whose
 * generation is not the advert's when the reading is over means nothing.
 */
#ifndef MMC_CORE_WIRE_ADVERT_H
#define MMC_CORE_WIRE_ADVERT_H

#include "core/types.h"

/* The generation's word lies right before the words of the bitmap. */
#define MMC_GENERATION_BYTES 8

struct mmc_advert {
	uint64_t generation;   /* 0: nothing can be read, and will not be */
	uint64_t map_address;  /* of the words of the bitmap of `present` */
	uint64_t data_address; /* of all blocks in rank order, if `has_data` */
	uint32_t map_key;
	uint32_t data_key;
	bool has_data;
};

#endif
