/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Losses in periods: a datagram after a lost one is more likely to be lost than others are.
 * This is Gilbert's model (Bell System Technical Journal 39, 1960; Elliott, ibid. 42, 1963)
 * of which the good state loses nothing and the bad one everything. Given are
 * the share of datagrams that are lost, and the mean length of a loss period (RFC 3357), which is
 * a number of consecutive datagrams that are all lost.
 */
#ifndef MMC_SUPPORT_GILBERT_H
#define MMC_SUPPORT_GILBERT_H

#include "support/prng.h"

#define MMC_GILBERT_ONE (UINT64_C(1) << 32) /* a probability of 1 */

/* The longest mean period. */
#define MMC_GILBERT_PERIOD_MAX 1000000

struct mmc_gilbert {
	/* Probabilities of a loss, in parts of 2^32: */
	uint64_t after_passed;
	uint64_t after_lost;
	uint64_t next; /* of the next datagram */
};

/*
 * Returns whether there is such a model: between two periods at least one datagram passes, so
 * the share may be period / (period + 1) at most. A period of 0 or 1 stands for independent losses,
 * whose share may be anything.
 */
static inline bool mmc_gilbert_is_valid(uint64_t loss, uint64_t period)
{
	return loss <= MMC_GILBERT_ONE && period <= MMC_GILBERT_PERIOD_MAX &&
	       (period <= 1 || loss <= MMC_GILBERT_ONE * period / (period + 1));
}

/*
 * Returns a valid model. `loss` is a probability in parts of 2^32, also of the first
 * datagram; `period` is a number of datagrams.
 */
static inline struct mmc_gilbert mmc_gilbert_make(uint64_t loss,
						  uint64_t period)
{
	struct mmc_gilbert model = { loss, loss, loss };

	if (period > 1) {
		model.after_lost = MMC_GILBERT_ONE - MMC_GILBERT_ONE / period;
		model.after_passed = loss * MMC_GILBERT_ONE /
				     (MMC_GILBERT_ONE - loss) / period;
	}
	return model;
}

/* Returns whether the next datagram is lost, by one number of the generator. */
static inline bool mmc_gilbert_loses(struct mmc_gilbert *model,
				     struct mmc_prng *prng)
{
	bool lost = mmc_prng_chance(prng, model->next);

	model->next = lost ? model->after_lost : model->after_passed;
	return lost;
}

#endif
