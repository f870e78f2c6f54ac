/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's advert: the memory that its right neighbour may read in one operation.
 * Addresses and keys are the transport's. A read is void if the generation in that
 * memory is not the advert's when the read ends.
 */
#ifndef MMC_CORE_WIRE_ADVERT_H
#define MMC_CORE_WIRE_ADVERT_H

#include "core/types.h"

/* The generation's word lies right before the words of the bitmap. */
#define MMC_GENERATION_BYTES 8

struct mmc_advert {
	uint64_t generation;   /* 0: nothing can be read, now or later */
	uint64_t map_address;  /* the words of the bitmap `present` */
	uint64_t data_address; /* all blocks in rank order, if `has_data` */
	uint32_t map_key;
	uint32_t data_key;
	bool has_data;
};

#endif
