/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the right neighbour read this rank's memory: its bitmap from the start, and its
 * data once the neighbour has asked for that, since few operations lose anything.
 *
 * MMC_ADVERTISER_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_ADVERTISER_H
#define MMC_CORE_REPAIR_ADVERTISER_H

#include "core/wire/advert.h"

enum mmc_advertiser_state {
	MMC_ADVERTISER_UNREGISTERED, /* others may not read the data yet */
	MMC_ADVERTISER_WANTED,	     /* the data is to be registered */
	MMC_ADVERTISER_REGISTERING,  /* the engine registers it */
	MMC_ADVERTISER_OWING,	     /* the advert is to be sent */
	MMC_ADVERTISER_SETTLED,	     /* registered, or never to be */
};

enum mmc_advertiser_event {
	MMC_ADVERTISER_ASKED,	   /* by the right neighbour */
	MMC_ADVERTISER_HANDED_OUT, /* the registration, to the engine */
	MMC_ADVERTISER_REGISTERED, /* or refused */
	MMC_ADVERTISER_TOLD,	   /* the advert was sent */
};

/* X(state, event, next state) */
#define MMC_ADVERTISER_TABLE(X)                                                \
	X(UNREGISTERED, ASKED, WANTED)                                         \
	X(WANTED, HANDED_OUT, REGISTERING)                                     \
	X(REGISTERING, REGISTERED, OWING)                                      \
	X(OWING, TOLD, SETTLED)                                                \
	X(SETTLED, ASKED, OWING)

struct mmc_advertiser {
	enum mmc_advertiser_state state;
	struct mmc_advert advert; /* generation 0: nothing can be read */
	/* The generation as others read it; NULL: they do not. */
	uint64_t *generation;
};

/*
 * Initializes an advertiser of `advert`: `generation` is the word before the bitmap that
 * `advert` names, or NULL.
 */
void mmc_advertiser_init(struct mmc_advertiser *advertiser,
			 const struct mmc_advert *advert, uint64_t *generation);

/* Sets the generation: what others read of the bitmap from now on is the operation's. */
void mmc_advertiser_publish(struct mmc_advertiser *advertiser);

/* Records that the right neighbour asks for an advert with data. */
void mmc_advertiser_ask(struct mmc_advertiser *advertiser);

/* Returns whether to register the data now. If so, the caller does. */
bool mmc_advertiser_registers(struct mmc_advertiser *advertiser);

/*
 * Takes the end of the registration: others may read the data at `address` with `key`;
 * with `ok` false, it cannot be registered.
 */
void mmc_advertiser_registered(struct mmc_advertiser *advertiser, bool ok,
			       uint64_t address, uint32_t key);

/* Returns whether to send the right neighbour the advert now. If so, the caller does. */
bool mmc_advertiser_tells(struct mmc_advertiser *advertiser);

/* Returns whether mmc_advertiser_registers() or mmc_advertiser_tells() would. */
static inline bool
mmc_advertiser_is_due(const struct mmc_advertiser *advertiser)
{
	return advertiser->state == MMC_ADVERTISER_WANTED ||
	       advertiser->state == MMC_ADVERTISER_OWING;
}

/* Clears the generation: reads that have not ended will be of no use. */
void mmc_advertiser_revoke(struct mmc_advertiser *advertiser);

#endif
