/* SPDX-License-Identifier: BSD-3-Clause */
/* A group of random chunks, and its parity, from which losses are mended. */
#ifndef MMC_TESTS_CODE_GROUP_H
#define MMC_TESTS_CODE_GROUP_H

#include "check.h"
#include "code/code.h"
#include "support/prng.h"

/* Each chunk has exact memory of its own, so that ASan sees each overrun. */
struct coded {
	struct mmc_code_group group;
	unsigned nparity;
	uint8_t *data[MMC_CODE_CHUNKS_MAX];
	uint8_t *parity[MMC_CODE_CHUNKS_MAX];
};

static inline size_t coded_bytes(const struct coded *coded, unsigned column)
{
	const struct mmc_code_group *group = &coded->group;

	return column + 1 == group->ndata ? group->last_bytes
					  : group->chunk_bytes;
}

/* Draws the data of a group of `ndata` and `nparity` chunks, and computes its parity. */
static inline void coded_draw(struct coded *coded, struct mmc_prng *prng,
			      const struct mmc_codec *codec)
{
	const struct mmc_code_rows rows = { .count = coded->nparity,
					    .parity = coded->parity };

	coded->group.data = coded->data;
	for (unsigned i = 0; i < coded->group.ndata; i++) {
		size_t nbytes = coded_bytes(coded, i);

		coded->data[i] = malloc(nbytes);
		for (size_t at = 0; at < nbytes; at++)
			coded->data[i][at] = (uint8_t)mmc_prng_next(prng);
	}
	for (unsigned i = 0; i < coded->nparity; i++)
		coded->parity[i] = malloc(coded->group.chunk_bytes);
	mmc_code_encode(codec, &coded->group, &rows);
}

static inline void coded_free(struct coded *coded)
{
	for (unsigned i = 0; i < coded->group.ndata; i++)
		free(coded->data[i]);
	for (unsigned i = 0; i < coded->nparity; i++)
		free(coded->parity[i]);
}

/*
 * Loses the data chunks `columns`, and mends them by the parity `rows`, `count` of either. Returns
 * whether all bytes are what they were.
 */
static inline bool coded_mends(const struct coded *coded,
			       const struct mmc_codec *codec,
			       const uint8_t *columns, const uint8_t *rows,
			       unsigned count)
{
	struct mmc_code_group mended = coded->group;
	uint8_t *data[MMC_CODE_CHUNKS_MAX];
	const uint8_t *parity[MMC_CODE_CHUNKS_MAX];
	const struct mmc_code_loss loss = { .columns = columns,
					    .rows = rows,
					    .parity = parity,
					    .count = count };
	bool right = true;

	memcpy(data, coded->data, sizeof(data));
	mended.data = data;
	for (unsigned i = 0; i < count; i++) {
		parity[i] = coded->parity[rows[i]];
		data[columns[i]] = malloc(coded_bytes(coded, columns[i]));
	}
	mmc_code_mend(codec, &mended, &loss);
	for (unsigned i = 0; i < count; i++) {
		unsigned column = columns[i];

		right &= memcmp(data[column], coded->data[column],
				coded_bytes(coded, column)) == 0;
		free(data[column]);
	}
	return right;
}

/* Writes a random choice of `count` of the numbers below `limit`, in ascending order. */
static inline void draw_some(struct mmc_prng *prng, unsigned limit,
			     unsigned count, uint8_t *some)
{
	unsigned found = 0;

	for (unsigned i = 0; i < limit && found < count; i++)
		if (mmc_prng_below(prng, limit - i) < count - found)
			some[found++] = (uint8_t)i;
}

#endif
