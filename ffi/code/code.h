/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A systematic code whose distance is the maximum: of a group of k data chunks and any number
 * of parity chunks, every k suffice to know all data (MacWilliams and Sloane 1977, chapter 11).
 *
 * Parity row j is the sum of all data chunks, chunk i multiplied with
 *
 *     (255 ^ i) / (255 ^ i ^ j),
 *
 * where ^ is both exclusive or and the sum of the field. This is a Cauchy matrix of the points
 * 255 ^ j and i, whose columns are scaled so that row 0 is all ones: one parity chunk is the exclusive
 * or of the data. A coefficient depends neither on k nor on how many rows there are, so a
 * group may be shorter than others, and rows may be added when they are asked for.
 */
#ifndef MMC_CODE_CODE_H
#define MMC_CODE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "code/codec.h"

/* The most chunks of a group, its data and all rows of parity. */
#define MMC_CODE_CHUNKS_MAX 255u

/*
 * The data chunks of a group, in their order, and where they lie. Only the last one may be
 * shorter than the others: it counts as if zeros followed, which nobody reads or writes.
 */
struct mmc_code_group {
	uint8_t *const *data;
	unsigned ndata;	    /* at least 1 */
	size_t chunk_bytes; /* of all data chunks but the last, and of parity */
	size_t last_bytes; /* of the last data chunk, from 1 to `chunk_bytes` */
};

/* Consecutive rows of parity, and where their chunks lie. */
struct mmc_code_rows {
	unsigned first;
	unsigned count;
	uint8_t *const *parity;
};

/*
 * What is lost of a group, and the parity chunks, as many, that take its place. They may be
 * of any rows, in any order, but all of different ones.
 */
struct mmc_code_loss {
	const uint8_t *columns; /* the lost data chunks, in ascending order */
	const uint8_t *rows;
	const uint8_t *const *parity;
	unsigned count; /* of each of these three; at least 1 */
};

/* Returns the coefficient of data chunk `column` in parity row `row`; their sum is below 255. */
uint8_t mmc_code_coefficient(unsigned row, unsigned column);

/*
 * Writes the parity chunks of `rows`, which lie apart from the data. `ndata`, `first` and
 * `count` together are MMC_CODE_CHUNKS_MAX at most.
 */
void mmc_code_encode(const struct mmc_codec *codec,
		     const struct mmc_code_group *group,
		     const struct mmc_code_rows *rows);

/*
 * Writes the lost data chunks to their places in `group`, from the other data chunks and the
 * parity. Each row plus `ndata` is below MMC_CODE_CHUNKS_MAX. Parity chunks are not changed.
 */
void mmc_code_mend(const struct mmc_codec *codec,
		   const struct mmc_code_group *group,
		   const struct mmc_code_loss *loss);

#endif
