/* SPDX-License-Identifier: BSD-3-Clause */
/* Convoys, packets of one message that cross the network together, and their memory. */
#ifndef MMC_DRIVERS_SIM_CONVOY_H
#define MMC_DRIVERS_SIM_CONVOY_H

#include "drivers/sim/fabric.h"

struct mmc_convoy {
	struct mmc_journey journey;
	uint32_t message; /* its sender's number for what it is part of */
	uint64_t payload_bytes;
	struct mmc_link_convoy packets;
	struct mmc_convoy *next; /* in the list of unused convoys */
};

/* The convoys that can be used again. Begins as all zeros. */
struct mmc_convoys {
	struct mmc_convoy *unused;
};

/* Returns a convoy of any content, or NULL if memory has run out. */
struct mmc_convoy *mmc_convoys_take(struct mmc_convoys *convoys);

/* Gives back a convoy, which can then be used again. */
void mmc_convoys_release(struct mmc_convoys *convoys,
			 struct mmc_convoy *convoy);

/* Frees the unused convoys. */
void mmc_convoys_free(struct mmc_convoys *convoys);

#endif
