/* SPDX-License-Identifier: BSD-3-Clause */
#include "code/code.h"

#include <stdbool.h>

#include "code/field.h"
#include "support/assert.h"
#include "support/memory.h"

/* The points of the Cauchy matrix. Those of rows and of columns are all different. */
static uint8_t row_point(unsigned row)
{
	return (uint8_t)(MMC_FIELD_ORDER ^ row);
}

static uint8_t column_point(unsigned column)
{
	return (uint8_t)column;
}

/* Returns the logarithm by which all coefficients of a column are scaled. */
static unsigned scale_log(unsigned column)
{
	return mmc_field_log(row_point(0) ^ column_point(column));
}

/* Returns the logarithm of 1 divided by the power `log` of 2. */
static unsigned inverse_log(unsigned log)
{
	return MMC_FIELD_ORDER - log;
}

uint8_t mmc_code_coefficient(unsigned row, unsigned column)
{
	MMC_ASSERT(row + column < MMC_CODE_CHUNKS_MAX);
	return mmc_field_power(scale_log(column) +
			       inverse_log(mmc_field_log(
				       row_point(row) ^ column_point(column))));
}

/* Sums of the chunks of a group. A shorter data chunk is the last source or the last sum. */
struct sums {
	const struct mmc_codec *codec;
	const uint8_t *sources[MMC_CODE_CHUNKS_MAX];
	uint8_t *to[MMC_CODE_CHUNKS_MAX];
	unsigned nsources;
	unsigned nsums;

	/* Returns the coefficient of a source in a sum. */
	uint8_t (*coefficient)(const void *context, unsigned sum,
			       unsigned source);
	const void *context;
};

/* Computes `nbytes` of all sums, as many at a time as a codec takes. */
static void compute(const struct sums *sums, size_t nbytes)
{
	uint8_t coefficients[MMC_COEFFICIENTS_MAX];
	unsigned limit = MMC_COEFFICIENTS_MAX / sums->nsources;

	for (unsigned first = 0; first < sums->nsums; first += limit) {
		unsigned left = sums->nsums - first;
		struct mmc_combination combination = {
			.coefficients = coefficients,
			.nrows = left < limit ? left : limit,
			.ncolumns = sums->nsources,
			.sources = sums->sources,
			.sums = &sums->to[first],
			.nbytes = nbytes,
		};
		uint8_t *next = coefficients;

		for (unsigned row = 0; row < combination.nrows; row++)
			for (unsigned i = 0; i < sums->nsources; i++)
				*next++ = sums->coefficient(sums->context,
							    first + row, i);
		sums->codec->combine(&combination);
	}
}

/* Computes the sums, first up to the end of the group's last chunk, and then behind it. */
static void compute_group(struct sums *sums, const struct mmc_code_group *group,
			  bool last_is_source)
{
	size_t offset = group->last_bytes;

	compute(sums, offset);
	if (offset == group->chunk_bytes)
		return;
	sums->nsources -= last_is_source;
	sums->nsums -= !last_is_source;
	if (sums->nsources == 0) {
		for (unsigned i = 0; i < sums->nsums; i++)
			memset(sums->to[i] + offset, 0,
			       group->chunk_bytes - offset);
		return;
	}
	for (unsigned i = 0; i < sums->nsources; i++)
		sums->sources[i] += offset;
	for (unsigned i = 0; i < sums->nsums; i++)
		sums->to[i] += offset;
	compute(sums, group->chunk_bytes - offset);
}

static uint8_t parity_coefficient(const void *context, unsigned sum,
				  unsigned source)
{
	const struct mmc_code_rows *rows = context;

	return mmc_code_coefficient(rows->first + sum, source);
}

void mmc_code_encode(const struct mmc_codec *codec,
		     const struct mmc_code_group *group,
		     const struct mmc_code_rows *rows)
{
	struct sums sums = {
		.codec = codec,
		.nsources = group->ndata,
		.nsums = rows->count,
		.coefficient = parity_coefficient,
		.context = rows,
	};

	MMC_ASSERT(group->ndata >= 1);
	MMC_ASSERT(group->ndata + rows->first + rows->count <=
		   MMC_CODE_CHUNKS_MAX);
	for (unsigned i = 0; i < group->ndata; i++)
		sums.sources[i] = group->data[i];
	for (unsigned i = 0; i < rows->count; i++)
		sums.to[i] = rows->parity[i];
	compute_group(&sums, group, true);
}

/*
 * The coefficients that mend. What is known are the values at `nsources` points, each of a row
 * or a column, of a function that is a polynomial divided by one with the rows' points as roots. The
 * values at the lost columns' points follow from Lagrange's formula, which also gives the
 * inverse of a Cauchy matrix. All products are sums of logarithms.
 */
struct mending {
	uint8_t lost_points[MMC_CODE_CHUNKS_MAX];
	uint8_t lost_logs[MMC_CODE_CHUNKS_MAX]; /* of factors of a sum */
	uint8_t points[MMC_CODE_CHUNKS_MAX];
	uint8_t logs[MMC_CODE_CHUNKS_MAX]; /* of factors of a source */
};

/*
 * Returns the sum of the logarithms of the differences between `point` and `count` others, among
 * which it may be itself.
 */
static unsigned distance_log(uint8_t point, const uint8_t *others,
			     unsigned count)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < count; i++)
		if (others[i] != point)
			sum += mmc_field_log(others[i] ^ point);
	return sum % MMC_FIELD_ORDER;
}

static uint8_t mending_coefficient(const void *context, unsigned sum,
				   unsigned source)
{
	const struct mending *mending = context;
	unsigned distance = mmc_field_log(mending->lost_points[sum] ^
					  mending->points[source]);

	return mmc_field_power(mending->lost_logs[sum] +
			       (unsigned)mending->logs[source] +
			       inverse_log(distance));
}

/* Writes the logarithms, once all points are known; those of rows are the first ones. */
static void fill_logs(struct mending *mending, unsigned nsources,
		      unsigned nlost)
{
	for (unsigned i = 0; i < nsources; i++) {
		uint8_t point = mending->points[i];
		unsigned log =
			distance_log(point, mending->lost_points, nlost) +
			inverse_log(
				distance_log(point, mending->points, nlost));

		if (i >= nlost)
			log += scale_log(point);
		mending->logs[i] = (uint8_t)(log % MMC_FIELD_ORDER);
	}
	for (unsigned i = 0; i < nlost; i++) {
		uint8_t point = mending->lost_points[i];
		unsigned log = distance_log(point, mending->points, nlost) +
			       inverse_log(distance_log(
				       point, mending->lost_points, nlost)) +
			       inverse_log(scale_log(point));

		mending->lost_logs[i] = (uint8_t)(log % MMC_FIELD_ORDER);
	}
}

void mmc_code_mend(const struct mmc_codec *codec,
		   const struct mmc_code_group *group,
		   const struct mmc_code_loss *loss)
{
	struct mending mending;
	struct sums sums = {
		.codec = codec,
		.nsources = group->ndata,
		.nsums = loss->count,
		.coefficient = mending_coefficient,
		.context = &mending,
	};
	unsigned nlost = 0;
	unsigned nsources = loss->count;

	MMC_ASSERT(loss->count >= 1 && loss->count <= group->ndata);
	for (unsigned i = 0; i < loss->count; i++) {
		MMC_ASSERT(loss->rows[i] + group->ndata < MMC_CODE_CHUNKS_MAX);
		mending.points[i] = row_point(loss->rows[i]);
		sums.sources[i] = loss->parity[i];
	}
	for (unsigned column = 0; column < group->ndata; column++) {
		if (nlost < loss->count && loss->columns[nlost] == column) {
			mending.lost_points[nlost] = column_point(column);
			sums.to[nlost++] = group->data[column];
		} else {
			MMC_ASSERT(nsources < group->ndata);
			mending.points[nsources] = column_point(column);
			sums.sources[nsources++] = group->data[column];
		}
	}
	MMC_ASSERT(nlost == loss->count);
	fill_logs(&mending, nsources, nlost);
	compute_group(&sums, group,
		      loss->columns[nlost - 1] != group->ndata - 1);
}
