/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the right neighbour read this rank's memory: its bitmap from the start, and its
 * data only once the neighbour has asked for that. Few operations lose anything, and
 * registering the data takes time.
 *
 * MMC_ADVERTISER_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_ADVERTISER_H
#define MMC_CORE_REPAIR_ADVERTISER_H

#include "core/wire/advert.h"

enum mmc_advertiser_state {
	MMC_ADVERTISER_UNREGISTERED, /* others may not read the data yet */
	MMC_ADVERTISER_WANTED,	     /* the data is to be registered */
	MMC_ADVERTISER_REGISTERING,  /* the engine registers the data */
	MMC_ADVERTISER_OWING,	     /* the advert is to be sent */
	/* The data is registered, or never will be. */
	MMC_ADVERTISER_SETTLED,
};

enum mmc_advertiser_event {
	MMC_ADVERTISER_ASKED,	   /* the right neighbour asked for the data */
	MMC_ADVERTISER_HANDED_OUT, /* the engine was told to register it */
	MMC_ADVERTISER_REGISTERED, /* the engine has, or could not */
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
	/* The word in which others read the generation; NULL: there is none. */
	uint64_t *generation;
};

/*
 * Initializes an advertiser of `advert`. `generation` is the word before the bitmap
 * that `advert` names, or NULL if nothing can be read.
 */
void mmc_advertiser_init(struct mmc_advertiser *advertiser,
			 const struct mmc_advert *advert, uint64_t *generation);

/*
 * Sets the generation: from now on what others read of the bitmap is this operation's.
 */
void mmc_advertiser_publish(struct mmc_advertiser *advertiser);

/* Records that the right neighbour has asked for an advert that has data. */
void mmc_advertiser_ask(struct mmc_advertiser *advertiser);

/* Returns whether to register the data now. If so, the caller must do it. */
bool mmc_advertiser_take_registration(struct mmc_advertiser *advertiser);

/*
 * Records how the registration ended. With `ok`, others may read the data at `address`
 * with `key`; otherwise the data cannot be registered, and nothing can be read.
 */
void mmc_advertiser_registered(struct mmc_advertiser *advertiser, bool ok,
			       uint64_t address, uint32_t key);

/*
 * Returns whether to send the advert to the right neighbour now. If so, the caller must
 * do it.
 */
bool mmc_advertiser_take_advert(struct mmc_advertiser *advertiser);

/*
 * Returns whether mmc_advertiser_take_registration() or mmc_advertiser_take_advert()
 * would be true.
 */
static inline bool
mmc_advertiser_is_due(const struct mmc_advertiser *advertiser)
{
	return advertiser->state == MMC_ADVERTISER_WANTED ||
	       advertiser->state == MMC_ADVERTISER_OWING;
}

/* Clears the generation: reads that have not ended yet bring nothing of use. */
void mmc_advertiser_revoke(struct mmc_advertiser *advertiser);

#endif
