/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A codec computes linear combinations of chunks over the field of field.h: parity from
 * data, and lost data from what is there. All codecs give the same bytes.
 */
#ifndef MMC_CODE_CODEC_H
#define MMC_CODE_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* The most coefficients of one combination. */
#define MMC_COEFFICIENTS_MAX 2048u

/*
 * Sums to be computed: row r is the sum of all sources, each multiplied with the coefficient
 * that stands at r * ncolumns + its number.
 */
struct mmc_combination {
	const uint8_t *coefficients; /* MMC_COEFFICIENTS_MAX of them at most */
	unsigned nrows;
	unsigned ncolumns;
	const uint8_t *const *sources; /* `ncolumns` of them */
	uint8_t *const *sums;	       /* `nrows`, apart from all sources */
	size_t nbytes;		       /* of each source and sum */
};

struct mmc_codec {
	const char *name; /* for people */

	/* Writes the sums. Any thread may call this. */
	void (*combine)(const struct mmc_combination *combination);
};

/* Our own codec, which needs nothing but memory. */
extern const struct mmc_codec mmc_codec_plain;

/*
 * Returns the fastest codec that this process can use: on a host that of ISA-L, whose library
 * the first call opens, and otherwise our own. Any thread may call this.
 */
const struct mmc_codec *mmc_codec_choose(void);

#endif
