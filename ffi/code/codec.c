/* SPDX-License-Identifier: BSD-3-Clause */
#include "code/codec.h"

#include "code/field.h"
#include "support/memory.h"

static void combine(const struct mmc_combination *combination)
{
	const uint8_t *coefficient = combination->coefficients;

	for (unsigned row = 0; row < combination->nrows; row++) {
		memset(combination->sums[row], 0, combination->nbytes);
		for (unsigned column = 0; column < combination->ncolumns;
		     column++)
			mmc_field_add(*coefficient++,
				      combination->sources[column],
				      combination->nbytes,
				      combination->sums[row]);
	}
}

const struct mmc_codec mmc_codec_plain = {
	.name = "tables",
	.combine = combine,
};
