/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "engine/state.h"

int mmc_parking_init(struct mmc_parking *parking, uint32_t chunk_bytes)
{
	uint32_t nslots = mmc_max_u32(MMC_PARKED_BYTES_MAX / chunk_bytes, 1);

	nslots = mmc_min_u32(nslots, 256);
	*parking = (struct mmc_parking){
		.slots = calloc(nslots, sizeof(*parking->slots)),
		.payloads = malloc((size_t)nslots * chunk_bytes),
		.nslots = nslots,
	};
	if (parking->slots != NULL && parking->payloads != NULL)
		return 0;
	mmc_parking_close(parking);
	return -MMC_ENOMEM;
}

void mmc_parking_close(struct mmc_parking *parking)
{
	free(parking->slots);
	free(parking->payloads);
	*parking = (struct mmc_parking){ 0 };
}

bool mmc_parking_keep(struct mmc_parking *parking,
		      const struct mmc_parked *parked, uint32_t chunk_bytes,
		      const uint8_t *payload)
{
	uint32_t slot = parking->nused;

	if (slot == parking->nslots)
		return false;
	parking->slots[slot] = *parked;
	memcpy(parking->payloads + (size_t)slot * chunk_bytes, payload,
	       parked->nbytes);
	parking->nused++;
	return true;
}

/* Moves the last slot into the place of `slot`, which is free again. */
static void vacate(struct mmc_parking *parking, uint32_t slot,
		   uint32_t chunk_bytes)
{
	uint32_t last = --parking->nused;

	if (slot == last)
		return;
	parking->slots[slot] = parking->slots[last];
	memcpy(parking->payloads + (size_t)slot * chunk_bytes,
	       parking->payloads + (size_t)last * chunk_bytes,
	       parking->slots[slot].nbytes);
}

void mmc_parking_hand_over(struct mmc_parking *parking,
			   struct mmc_request *request, uint32_t chunk_bytes,
			   uint64_t now_ns)
{
	uint32_t epoch = request->op->config.epoch;
	uint32_t slot = 0;

	while (slot < parking->nused) {
		const struct mmc_parked *parked = &parking->slots[slot];

		if (mmc_epoch_after(parked->epoch, epoch)) {
			slot++;
			continue;
		}
		if (parked->epoch == epoch)
			mmc_request_chunk(request, parked->source,
					  parked->index,
					  parking->payloads +
						  (size_t)slot * chunk_bytes,
					  parked->nbytes, now_ns);
		vacate(parking, slot, chunk_bytes);
	}
}
