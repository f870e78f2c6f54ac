/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded pool for chunks of eager operations that arrive before their operation has
 * started. If they stayed in a receive buffer, they would block others.
 */
#ifndef MMC_ENGINE_PARKING_H
#define MMC_ENGINE_PARKING_H

#include <stdbool.h>
#include <stdint.h>

struct mmc_parked {
	uint32_t epoch;
	uint32_t source;
	uint32_t index;
	uint32_t nbytes;
};

struct mmc_parking {
	struct mmc_parked *slots;
	uint8_t *payloads;
	uint32_t slot_bytes;
	uint32_t nslots;
	uint32_t nused;
};

/* Allocates the pool, for payloads of up to `slot_bytes`. Returns 0 or -MMC_ENOMEM. */
int mmc_parking_init(struct mmc_parking *parking, uint32_t slot_bytes);
void mmc_parking_close(struct mmc_parking *parking);

/* Keeps a chunk. Returns false if it is too long or there is no room. */
bool mmc_parking_keep(struct mmc_parking *parking,
		      const struct mmc_parked *parked, const uint8_t *payload);

/*
 * Takes a chunk of `epoch` out of the pool, and drops chunks of older epochs, which are
 * not wanted any more. Returns its payload, valid until the next call, or NULL if there
 * is none.
 */
const uint8_t *mmc_parking_take(struct mmc_parking *parking, uint32_t epoch,
				struct mmc_parked *parked);

#endif
