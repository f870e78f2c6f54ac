/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parking: a bounded pool for chunks that arrive before their operation has started on
 * this rank, as those of eager operations may. If the chunks stayed in the receive
 * buffer instead, they would block the datagrams behind them. Parts of blocks, which
 * control messages carry, have a pool of their own, lest these many take the chunks' room.
 */
#ifndef MMC_ENGINE_PARKING_H
#define MMC_ENGINE_PARKING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The most chunks that are kept of one rank for one epoch: an eager operation has one of
 * each, and somebody else may forge another.
 */
#define MMC_PARKED_EACH_MAX 2

/* A chunk in the pool, or a part of blocks, without its payload. */
struct mmc_parked {
	uint32_t epoch;
	uint32_t source; /* the rank that has sent it */
	uint32_t index;	 /* the index in its header */
	uint32_t first;	 /* of a part of blocks (struct mmc_part); else 0 */
	uint32_t nbytes; /* length of the payload */
};

struct mmc_parking {
	struct mmc_parked *slots;
	uint8_t *payloads;   /* [nslots] of `slot_bytes` each */
	uint32_t slot_bytes; /* the longest payload */
	uint32_t nslots;
	uint32_t nused;	   /* slots in use, which are the first ones */
	uint32_t each_max; /* the most slots of one rank for one epoch */
};

/*
 * Allocates the pool, for payloads of up to `slot_bytes`, of which `each_max` are kept of
 * one rank for one epoch. Returns 0 or -MMC_ENOMEM.
 */
int mmc_parking_init(struct mmc_parking *parking, uint32_t slot_bytes,
		     uint32_t each_max);

/* Frees the pool. */
void mmc_parking_close(struct mmc_parking *parking);

/* What mmc_parking_keep() does with a chunk. */
enum mmc_parking_fate {
	MMC_PARKING_KEPT,
	MMC_PARKING_REPEATED, /* the rank's same one of that epoch is there already */
	MMC_PARKING_FULL, /* no room in the pool, or in the rank's share of it */
};

/*
 * Puts a chunk, with a copy of its payload, into the pool, unless it is too long, or
 * there already: the first to come counts. Returns what became of it. Whoever forges
 * chunks of one rank displaces those of that rank alone.
 */
enum mmc_parking_fate mmc_parking_keep(struct mmc_parking *parking,
				       const struct mmc_parked *parked,
				       const uint8_t *payload);

/*
 * Takes one chunk of `epoch` out of the pool, and writes it to `*parked`. Returns its
 * payload, valid until the next call on the pool, or NULL if the pool has no such
 * chunk. Also drops chunks of older epochs, which nobody will ask for.
 */
const uint8_t *mmc_parking_take(struct mmc_parking *parking, uint32_t epoch,
				struct mmc_parked *parked);

#endif
