/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/advertiser.h"

#include "support/states.h"

static const struct mmc_transition transitions[] = {
#define ADVERTISER_ROW(state, event, next)                                     \
	{ MMC_ADVERTISER_##state, MMC_ADVERTISER_##event,                      \
	  MMC_ADVERTISER_##next },
	MMC_ADVERTISER_TABLE(ADVERTISER_ROW)
#undef ADVERTISER_ROW
};

/* Takes `event`; returns whether it leads to another state from the present one. */
static bool step(struct mmc_advertiser *advertiser,
		 enum mmc_advertiser_event event)
{
	unsigned next;

	if (!mmc_transition_find(transitions,
				 sizeof(transitions) / sizeof(*transitions),
				 advertiser->state, event, &next))
		return false;
	advertiser->state = (enum mmc_advertiser_state)next;
	return true;
}

void mmc_advertiser_init(struct mmc_advertiser *advertiser, uint64_t generation,
			 uint64_t *word)
{
	*advertiser = (struct mmc_advertiser){
		.state = generation != 0 ? MMC_ADVERTISER_UNREGISTERED
					 : MMC_ADVERTISER_SETTLED,
		.advert = { .generation = generation },
		.word = word,
	};
}

void mmc_advertiser_publish(struct mmc_advertiser *advertiser)
{
	if (advertiser->word != NULL)
		__atomic_store_n(advertiser->word,
				 advertiser->advert.generation,
				 __ATOMIC_RELEASE);
}

void mmc_advertiser_ask(struct mmc_advertiser *advertiser)
{
	step(advertiser, MMC_ADVERTISER_ASKED);
}

bool mmc_advertiser_take_registration(struct mmc_advertiser *advertiser)
{
	return step(advertiser, MMC_ADVERTISER_HANDED_OUT);
}

void mmc_advertiser_registered(struct mmc_advertiser *advertiser,
			       const struct mmc_advert *advert)
{
	step(advertiser, MMC_ADVERTISER_REGISTERED);
	advertiser->advert = *advert;
}

bool mmc_advertiser_take_advert(struct mmc_advertiser *advertiser)
{
	return step(advertiser, MMC_ADVERTISER_TOLD);
}

void mmc_advertiser_revoke(struct mmc_advertiser *advertiser)
{
	if (advertiser->word != NULL)
		__atomic_store_n(advertiser->word, 0, __ATOMIC_SEQ_CST);
}
