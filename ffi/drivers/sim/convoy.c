/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/convoy.h"

#include <stdlib.h>

struct mmc_convoy *mmc_convoys_take(struct mmc_convoys *convoys)
{
	struct mmc_convoy *convoy = convoys->unused;

	if (!convoy)
		return malloc(sizeof(*convoy));
	convoys->unused = convoy->next;
	return convoy;
}

void mmc_convoys_release(struct mmc_convoys *convoys, struct mmc_convoy *convoy)
{
	convoy->next = convoys->unused;
	convoys->unused = convoy;
}

void mmc_convoys_free(struct mmc_convoys *convoys)
{
	while (convoys->unused) {
		struct mmc_convoy *convoy = convoys->unused;

		convoys->unused = convoy->next;
		free(convoy);
	}
}
