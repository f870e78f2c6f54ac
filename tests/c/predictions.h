/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A predictor for tests of drivers, which has no operation behind it. The datagrams of
 * one subgroup arrive in the order of their places, which adjoin in memory.
 */
#ifndef MMC_TESTS_PREDICTIONS_H
#define MMC_TESTS_PREDICTIONS_H

#include "drivers/predictor.h"

#define PREDICTIONS_MAX 64

struct predictions {
	uint8_t *base;	 /* the place of the datagram at position 0 */
	uint32_t nbytes; /* the payload of each datagram */
	uint32_t count;
	uint32_t subgroup;
	uint32_t seen; /* one past the last position received */
	uint32_t sources[PREDICTIONS_MAX]; /* of each position */
	bool here[PREDICTIONS_MAX];	   /* arrived: not to be aimed at */
};

static inline void predictions_seek(const void *context,
				    struct mmc_cursor *cursor, uint32_t count)
{
	const struct predictions *all = context;

	cursor->position = all->seen + count;
}

static inline void predictions_next(const void *context,
				    struct mmc_cursor *cursor,
				    struct mmc_prediction *predictions,
				    uint32_t count)
{
	const struct predictions *all = context;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t position = cursor->position++;

		predictions[i].place = NULL;
		if (cursor->subgroup != all->subgroup ||
		    position >= all->count || all->here[position])
			continue;
		predictions[i] = (struct mmc_prediction){
			.place = all->base + (size_t)position * all->nbytes,
			.nbytes = all->nbytes,
			.source = all->sources[position],
			.index = position,
			.position = position,
		};
	}
}

static inline bool predictions_locate(const void *context, const uint8_t *place,
				      uint32_t *subgroup, uint32_t *position)
{
	const struct predictions *all = context;
	size_t offset_bytes = (uintptr_t)place - (uintptr_t)all->base;

	*subgroup = all->subgroup;
	*position = (uint32_t)(offset_bytes / all->nbytes);
	return offset_bytes < (size_t)all->count * all->nbytes;
}

/* Returns a predictor of datagrams with this header on these subgroups. */
static inline struct mmc_predictor
predictions_predictor(const struct predictions *all,
		      const struct mmc_header *header, uint32_t nsubgroups)
{
	return (struct mmc_predictor){
		.context = all,
		.header = *header,
		.nsubgroups = nsubgroups,
		.seek = predictions_seek,
		.predict = predictions_next,
		.locate = predictions_locate,
	};
}

#endif
