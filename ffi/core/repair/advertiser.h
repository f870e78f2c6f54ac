/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the right neighbour read this rank's memory, its bitmap and its data, but only
 * once the neighbour has asked for that. Few operations lose anything, and registering
 * memory takes time.
 *
 * MMC_ADVERTISER_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_ADVERTISER_H
#define MMC_CORE_REPAIR_ADVERTISER_H

#include "core/wire/advert.h"

enum mmc_advertiser_state {
	MMC_ADVERTISER_UNREGISTERED, /* others may not read the memory yet */
	MMC_ADVERTISER_WANTED,	     /* the memory is to be registered */
	MMC_ADVERTISER_REGISTERING,  /* the engine registers the memory */
	MMC_ADVERTISER_OWING,	     /* the advert is to be sent */
	/* The memory is registered, or never will be. */
	MMC_ADVERTISER_SETTLED,
};

enum mmc_advertiser_event {
	MMC_ADVERTISER_ASKED,	   /* the right neighbour asked for an advert */
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

/*
 * Where and by which keys the right neighbour may read: the memory of the operation's
 * state, as mmc_op_footprint() counts it, and all blocks in rank order.
 */
struct mmc_readable {
	uint64_t state_address;
	uint64_t data_address;
	uint32_t state_key;
	uint32_t data_key;
};

struct mmc_advertiser {
	enum mmc_advertiser_state state;
	struct mmc_advert advert; /* generation 0: nothing can be read */
	/* The word in which others read the generation; NULL: there is none. */
	uint64_t *word;
};

/*
 * Initializes an advertiser whose adverts have this generation; 0: nothing can be read,
 * now or later. `word` is the word before the bitmap, or NULL if there is none.
 */
void mmc_advertiser_init(struct mmc_advertiser *advertiser, uint64_t generation,
			 uint64_t *word);

/*
 * Sets the generation: from now on what others read of the bitmap is this operation's.
 */
void mmc_advertiser_publish(struct mmc_advertiser *advertiser);

/* Records that the right neighbour has asked for an advert of memory to read. */
void mmc_advertiser_ask(struct mmc_advertiser *advertiser);

/* Returns whether to register the memory now. If so, the caller must do it. */
bool mmc_advertiser_take_registration(struct mmc_advertiser *advertiser);

/*
 * Records how the registration ended: `advert` is what to send from now on. Its
 * generation is 0 if the memory cannot be registered.
 */
void mmc_advertiser_registered(struct mmc_advertiser *advertiser,
			       const struct mmc_advert *advert);

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
