/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/copies.h"

#include <stdlib.h>

#include "mpimcast/errors.h"
#include "support/assert.h"

int mmc_copies_reserve(struct mmc_copies *copies, size_t nbytes,
		       uint32_t ncopies, uint32_t *nmade)
{
	*nmade = 0;
	if (nbytes > copies->nbytes) {
		mmc_copies_clear(copies);
		copies->nbytes = nbytes;
		copies->ncopies = 0;
	}
	while (copies->ncopies < ncopies) {
		struct mmc_copy *copy = malloc(sizeof(*copy) + copies->nbytes);

		if (copy == NULL)
			return -MMC_ENOMEM;
		copy->nbytes = copies->nbytes;
		copies->ncopies++;
		++*nmade;
		mmc_copies_give(copies, copy);
	}
	return 0;
}

struct mmc_copy *mmc_copies_take(struct mmc_copies *copies)
{
	struct mmc_copy *copy = copies->idle;

	MMC_ASSERT(copy != NULL);
	copies->idle = copy->next;
	return copy;
}

void mmc_copies_give(struct mmc_copies *copies, struct mmc_copy *copy)
{
	if (copy == NULL)
		return;
	/*
	 * Since this copy was taken, larger ones have been reserved: it is too small.
	 */
	if (copy->nbytes < copies->nbytes) {
		free(copy);
		return;
	}
	copy->next = copies->idle;
	copies->idle = copy;
}

void mmc_copies_clear(struct mmc_copies *copies)
{
	while (copies->idle != NULL) {
		struct mmc_copy *copy = copies->idle;

		copies->idle = copy->next;
		copies->ncopies--;
		free(copy);
	}
}
