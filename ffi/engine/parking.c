/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/parking.h"

#include <mpimcast/errors.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/header.h"
#include "support/bits.h"

/* Room for two eager operations of 64 KiB each, by which other ranks may be ahead. */
#define PARKED_BYTES_MAX (128 * 1024)

/* Limits the table of slots where chunks are very short. */
#define PARKED_SLOTS_MAX 256

int mmc_parking_init(struct mmc_parking *parking, uint32_t slot_bytes,
		     uint32_t each_max)
{
	uint32_t nslots =
		mmc_min_u32(mmc_max_u32(PARKED_BYTES_MAX / slot_bytes, 1),
			    PARKED_SLOTS_MAX);

	*parking = (struct mmc_parking){
		.slots = calloc(nslots, sizeof(*parking->slots)),
		.payloads = malloc((size_t)nslots * slot_bytes),
		.slot_bytes = slot_bytes,
		.nslots = nslots,
		.each_max = each_max,
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

static uint8_t *payload_of(const struct mmc_parking *parking, uint32_t slot)
{
	return parking->payloads + (size_t)slot * parking->slot_bytes;
}

/* Returns whether two of a rank for an epoch are the same chunk, or part of blocks. */
static bool is_same(const struct mmc_parked *one,
		    const struct mmc_parked *other)
{
	return ((one->index ^ other->index) & ~MMC_INDEX_REPAIR) == 0 &&
	       one->first == other->first;
}

/* Returns what is to become of a chunk, or of a part of blocks. */
static enum mmc_parking_fate fate_of(const struct mmc_parking *parking,
				     const struct mmc_parked *parked)
{
	uint32_t nkept = 0;

	for (uint32_t i = 0; i < parking->nused; i++) {
		const struct mmc_parked *kept = &parking->slots[i];

		if (kept->source != parked->source ||
		    kept->epoch != parked->epoch)
			continue;
		nkept++;
		if (is_same(kept, parked))
			return MMC_PARKING_REPEATED;
	}
	if (parking->nused == parking->nslots || nkept == parking->each_max ||
	    parked->nbytes > parking->slot_bytes)
		return MMC_PARKING_FULL;
	return MMC_PARKING_KEPT;
}

enum mmc_parking_fate mmc_parking_keep(struct mmc_parking *parking,
				       const struct mmc_parked *parked,
				       const uint8_t *payload)
{
	enum mmc_parking_fate fate = fate_of(parking, parked);
	uint32_t slot = parking->nused;

	if (fate != MMC_PARKING_KEPT)
		return fate;
	parking->slots[slot] = *parked;
	memcpy(payload_of(parking, slot), payload, parked->nbytes);
	parking->nused++;
	return MMC_PARKING_KEPT;
}

static void swap_bytes(uint8_t *a, uint8_t *b, uint32_t nbytes)
{
	for (uint32_t i = 0; i < nbytes; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/*
 * Takes a slot out of use. Its content moves behind the slots in use, at `nused`, where
 * the caller can read it until another chunk is kept.
 */
static void vacate(struct mmc_parking *parking, uint32_t slot)
{
	uint32_t last = --parking->nused;
	struct mmc_parked parked = parking->slots[slot];

	if (slot == last)
		return;
	parking->slots[slot] = parking->slots[last];
	parking->slots[last] = parked;
	swap_bytes(payload_of(parking, slot), payload_of(parking, last),
		   parking->slot_bytes);
}

const uint8_t *mmc_parking_take(struct mmc_parking *parking, uint32_t epoch,
				struct mmc_parked *parked)
{
	uint32_t slot = 0;

	while (slot < parking->nused) {
		struct mmc_parked found = parking->slots[slot];

		if (mmc_epoch_after(found.epoch, epoch)) {
			slot++;
			continue;
		}
		vacate(parking, slot);
		if (found.epoch != epoch)
			continue;
		*parked = found;
		return payload_of(parking, parking->nused);
	}
	return NULL;
}
