/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of early chunks: what it keeps, gives back, drops and refuses. */
#include "engine/parking.h"

#include "check.h"
#include "core/wire/header.h"
#include "support/prng.h"

#define SLOT_BYTES 1000

static struct mmc_parking parking;

/* Parks a chunk of rank `source`, whose payload tells its epoch and its index. */
static enum mmc_parking_fate park_of(uint32_t source, uint32_t epoch,
				     uint32_t index, uint32_t nbytes)
{
	const struct mmc_parked parked = {
		.epoch = epoch,
		.source = source,
		.index = index,
		.nbytes = nbytes,
	};
	uint8_t payload[SLOT_BYTES + 1];

	memset(payload, (int)(epoch * 31 + index), sizeof(payload));
	return mmc_parking_keep(&parking, &parked, payload);
}

/* Parks chunk `index` of the rank of that number; returns whether it was kept. */
static bool park(uint32_t epoch, uint32_t index, uint32_t nbytes)
{
	return park_of(index, epoch, index, nbytes) == MMC_PARKING_KEPT;
}

/* Takes a chunk of an epoch and checks it. Returns false if there is none. */
static bool take(uint32_t epoch, uint32_t *index)
{
	struct mmc_parked parked;
	const uint8_t *payload = mmc_parking_take(&parking, epoch, &parked);

	if (payload == NULL)
		return false;
	CHECK_EQ(parked.epoch, epoch);
	CHECK_EQ(parked.source, parked.index);
	for (uint32_t i = 0; i < parked.nbytes; i++)
		CHECK_EQ(payload[i], (uint8_t)(epoch * 31 + parked.index));
	*index = parked.index;
	return true;
}

/* Each chunk is given back once, to its own epoch, in any order. */
static void each_chunk_once(void)
{
	uint32_t index;

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, MMC_PARKED_EACH_MAX),
		 0);
	for (uint32_t i = 0; i < 60; i++)
		CHECK(park(5 + i % 2, i, i));
	for (uint32_t epoch = 5; epoch <= 6; epoch++) {
		uint64_t seen = 0;

		while (take(epoch, &index))
			seen |= UINT64_C(1) << index;
		CHECK_EQ(seen, (UINT64_C(0x555555555555555)) << (epoch - 5));
	}
	CHECK_EQ(parking.nused, 0);
	mmc_parking_close(&parking);
}

/* Chunks of older epochs are dropped, even when epoch numbers wrap around. */
static void older_epochs_are_dropped(void)
{
	uint32_t index;

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, MMC_PARKED_EACH_MAX),
		 0);
	CHECK(park(UINT32_MAX, 1, 10));
	CHECK(park(0, 2, 10));
	CHECK(park(1, 3, 10));
	CHECK(take(0, &index));
	CHECK_EQ(index, 2);
	CHECK(!take(0, &index));
	CHECK_EQ(parking.nused, 1);
	CHECK(take(1, &index));
	CHECK_EQ(index, 3);
	mmc_parking_close(&parking);
}

/* There is room for two eager operations; chunks too long are refused. */
static void it_is_bounded(void)
{
	uint32_t nkept = 0;
	uint32_t index;

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, MMC_PARKED_EACH_MAX),
		 0);
	CHECK(!park(1, 0, SLOT_BYTES + 1));
	while (park(1, nkept, SLOT_BYTES))
		nkept++;
	CHECK_EQ(nkept, 128 * 1024 / SLOT_BYTES);
	CHECK(take(1, &index));
	CHECK(park(1, 0, SLOT_BYTES));
	CHECK(!park(1, 1, SLOT_BYTES));
	mmc_parking_close(&parking);

	/* Small chunks have at most 256 slots, huge ones at least one. */
	CHECK_EQ(mmc_parking_init(&parking, 1, MMC_PARKED_EACH_MAX), 0);
	CHECK_EQ(parking.nslots, 256);
	mmc_parking_close(&parking);
	CHECK_EQ(mmc_parking_init(&parking, 1 << 20, MMC_PARKED_EACH_MAX), 0);
	CHECK_EQ(parking.nslots, 1);
	mmc_parking_close(&parking);
}

/* Of the same chunk the first to come is kept, whether or not it is a repair. */
static void a_chunk_is_kept_once(void)
{
	uint32_t index;

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, MMC_PARKED_EACH_MAX),
		 0);
	CHECK_EQ(park_of(7, 1, 7, 10), MMC_PARKING_KEPT);
	CHECK_EQ(park_of(7, 1, 7, 11), MMC_PARKING_REPEATED);
	CHECK_EQ(park_of(7, 1, 7 | MMC_INDEX_REPAIR, 12), MMC_PARKING_REPEATED);
	CHECK_EQ(park_of(7, 2, 7, 10), MMC_PARKING_KEPT);
	CHECK(take(1, &index));
	CHECK_EQ(index, 7);
	CHECK(!take(1, &index));
	mmc_parking_close(&parking);
}

/*
 * Somebody who sends chunks in the name of one rank fills that rank's share, and nobody
 * else's: the chunks of 15 other ranks, for all four epochs, are kept.
 */
static void each_rank_has_its_share(void)
{
	const uint32_t forged = 3;
	uint32_t nkept = 0;

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, MMC_PARKED_EACH_MAX),
		 0);
	for (uint32_t i = 0; i < 1000; i++)
		nkept += park_of(forged, 1 + i % 4, 100 + i, 10) ==
			 MMC_PARKING_KEPT;
	CHECK_EQ(nkept, 4 * MMC_PARKED_EACH_MAX);
	CHECK_EQ(park_of(forged, 1, forged, 10), MMC_PARKING_FULL);
	for (uint32_t epoch = 1; epoch <= 4; epoch++)
		for (uint32_t rank = 4; rank < 4 + 15; rank++)
			CHECK_EQ(park_of(rank, epoch, rank, SLOT_BYTES),
				 MMC_PARKING_KEPT);
	mmc_parking_close(&parking);
}

/* Parts of blocks are told apart by where they begin. */
static void parts_are_told_apart(void)
{
	const uint8_t payload[10] = { 0 };
	struct mmc_parked part = {
		.epoch = 1,
		.source = 3,
		.index = MMC_INDEX_CONTROL,
		.nbytes = sizeof(payload),
	};

	CHECK_EQ(mmc_parking_init(&parking, SLOT_BYTES, 3), 0);
	for (part.first = 0; part.first < 3; part.first++) {
		CHECK_EQ(mmc_parking_keep(&parking, &part, payload),
			 MMC_PARKING_KEPT);
		CHECK_EQ(mmc_parking_keep(&parking, &part, payload),
			 MMC_PARKING_REPEATED);
	}
	CHECK_EQ(mmc_parking_keep(&parking, &part, payload), MMC_PARKING_FULL);
	part.epoch = 2;
	CHECK_EQ(mmc_parking_keep(&parking, &part, payload), MMC_PARKING_KEPT);
	mmc_parking_close(&parking);
}

CHECK_MAIN(CHECK_TEST(each_chunk_once), CHECK_TEST(older_epochs_are_dropped),
	   CHECK_TEST(it_is_bounded), CHECK_TEST(a_chunk_is_kept_once),
	   CHECK_TEST(each_rank_has_its_share),
	   CHECK_TEST(parts_are_told_apart))
