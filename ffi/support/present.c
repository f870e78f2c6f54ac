/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/present.h"

#include <stdlib.h>

struct mmc_present {
	void *memory;
	const uint64_t *words;
	uint32_t nbits;
	uint32_t nholders; /* use atomics */
};

struct mmc_present *mmc_present_new(void *memory, const uint64_t *words,
				    uint32_t nbits)
{
	struct mmc_present *new = malloc(sizeof(*new));

	if (new == NULL)
		return NULL;
	*new = (struct mmc_present){
		.memory = memory,
		.words = words,
		.nbits = nbits,
		.nholders = 1,
	};
	return new;
}

struct mmc_present *mmc_present_hold(struct mmc_present *present)
{
	__atomic_fetch_add(&present->nholders, 1, __ATOMIC_RELAXED);
	return present;
}

const uint64_t *mmc_present_words(const struct mmc_present *present,
				  uint32_t *nbits)
{
	*nbits = present->nbits;
	return present->words;
}

void mmc_present_free(struct mmc_present *present)
{
	if (present == NULL ||
	    __atomic_fetch_sub(&present->nholders, 1, __ATOMIC_ACQ_REL) > 1)
		return;
	free(present->memory);
	free(present);
}
