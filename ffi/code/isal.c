/* SPDX-License-Identifier: BSD-3-Clause */
#include "code/isal.h"

#include <mpimcast/errors.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "code/field.h"
#include "support/error.h"
#include "support/library.h"

#define LIBRARY "libisal.so.2"

/* What the library wants for each coefficient, to multiply by it. */
#define TABLE_BYTES 32

/* To which addresses must be aligned that xor_gen() takes. */
#define XOR_ALIGN_BYTES 32

/* The functions that are used, as erasure_code.h and raid.h declare them. */
#define FUNCTIONS(X)                                                           \
	X(void, ec_init_tables,                                                \
	  (int columns, int rows, uint8_t *coefficients, uint8_t *tables))     \
	X(void, ec_encode_data,                                                \
	  (int nbytes, int columns, int rows, uint8_t *tables,                 \
	   uint8_t **sources, uint8_t **sums))                                 \
	X(int, xor_gen, (int count, int nbytes, void **chunks))

#define MEMBER(result, name, arguments) result(*name) arguments;
static struct {
	FUNCTIONS(MEMBER)
} isal;

#define SYMBOL(result, name, arguments)                                        \
	{ #name, offsetof(__typeof__(isal), name) },
static const struct mmc_library_symbol symbols[] = { FUNCTIONS(SYMBOL) };

/*
 * The tables of the latest coefficients of each thread. A sender encodes group after group
 * by the same ones, and tables take a fifth of the time that a group of small chunks does.
 */
static _Thread_local struct {
	unsigned nrows;
	unsigned ncolumns;
	uint8_t coefficients[MMC_COEFFICIENTS_MAX];
	uint8_t tables[MMC_COEFFICIENTS_MAX * TABLE_BYTES];
} latest;

static uint8_t *find_tables(const struct mmc_combination *combination)
{
	unsigned nrows = combination->nrows;
	unsigned ncolumns = combination->ncolumns;
	size_t count = (size_t)nrows * ncolumns;

	if (latest.nrows != nrows || latest.ncolumns != ncolumns ||
	    memcmp(latest.coefficients, combination->coefficients, count) !=
		    0) {
		latest.nrows = nrows;
		latest.ncolumns = ncolumns;
		memcpy(latest.coefficients, combination->coefficients, count);
		isal.ec_init_tables((int)ncolumns, (int)nrows,
				    latest.coefficients, latest.tables);
	}
	return latest.tables;
}

/* Returns whether the library's exclusive or computes a combination, which is done then. */
static bool combine_by_xor(const struct mmc_combination *combination)
{
	void *chunks[MMC_FIELD_ORDER + 1];
	unsigned ncolumns = combination->ncolumns;
	uintptr_t addresses = (uintptr_t)combination->sums[0];

	if (combination->nrows != 1 || ncolumns < 2 ||
	    ncolumns > MMC_FIELD_ORDER)
		return false;
	for (unsigned i = 0; i < ncolumns; i++) {
		if (combination->coefficients[i] != 1)
			return false;
		addresses |= (uintptr_t)combination->sources[i];
		chunks[i] = (void *)(uintptr_t)combination->sources[i];
	}
	chunks[ncolumns] = combination->sums[0];
	return addresses % XOR_ALIGN_BYTES == 0 &&
	       isal.xor_gen((int)ncolumns + 1, (int)combination->nbytes,
			    chunks) == 0;
}

/* The library changes no source, though its declarations do not say so. */
static void combine(const struct mmc_combination *combination)
{
	if (!combine_by_xor(combination))
		isal.ec_encode_data((int)combination->nbytes,
				    (int)combination->ncolumns,
				    (int)combination->nrows,
				    find_tables(combination),
				    (uint8_t **)(uintptr_t)combination->sources,
				    (uint8_t **)(uintptr_t)combination->sums);
}

const struct mmc_codec mmc_codec_isal = {
	.name = "ISA-L (" LIBRARY ")",
	.combine = combine,
};

#define CHECKED_ROWS 3
#define CHECKED_COLUMNS 7
#define CHECKED_BYTES 333

/* Returns whether ISA-L gives the same bytes as our tables. */
static bool gives_our_bytes(void)
{
	uint8_t coefficients[CHECKED_ROWS * CHECKED_COLUMNS];
	uint8_t bytes[CHECKED_COLUMNS * CHECKED_BYTES];
	uint8_t results[2][CHECKED_ROWS][CHECKED_BYTES];
	const uint8_t *sources[CHECKED_COLUMNS];
	struct mmc_combination combination = {
		.coefficients = coefficients,
		.nrows = CHECKED_ROWS,
		.ncolumns = CHECKED_COLUMNS,
		.sources = sources,
		.nbytes = CHECKED_BYTES,
	};

	for (unsigned i = 0; i < sizeof(coefficients); i++)
		coefficients[i] = mmc_field_power(i * i);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 181 >> 3);
	for (unsigned i = 0; i < CHECKED_COLUMNS; i++)
		sources[i] = &bytes[(size_t)i * CHECKED_BYTES];
	for (unsigned each = 0; each < 2; each++) {
		uint8_t *sums[] = { results[each][0], results[each][1],
				    results[each][2] };

		combination.sums = sums;
		(each == 0 ? &mmc_codec_plain : &mmc_codec_isal)
			->combine(&combination);
	}
	return memcmp(results[0], results[1], sizeof(results[0])) == 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool opened;

int mmc_code_library_open(void)
{
	int rv = 0;

	pthread_mutex_lock(&mutex);
	if (!opened) {
		rv = mmc_library_open(LIBRARY, symbols,
				      sizeof(symbols) / sizeof(symbols[0]),
				      &isal);
		if (rv == 0 && !gives_our_bytes()) {
			mmc_error_set(LIBRARY " computes wrong parity");
			rv = -MMC_ENODEV;
		}
		opened = rv == 0;
	}
	pthread_mutex_unlock(&mutex);
	return rv;
}

/* The choice is kept, since looking for a missing library takes longer than coding a group. */
const struct mmc_codec *mmc_codec_choose(void)
{
	static _Atomic(const struct mmc_codec *) chosen;
	const struct mmc_codec *codec =
		atomic_load_explicit(&chosen, memory_order_acquire);

	if (codec == NULL) {
		codec = mmc_code_library_open() == 0 ? &mmc_codec_isal
						     : &mmc_codec_plain;
		atomic_store_explicit(&chosen, codec, memory_order_release);
	}
	return codec;
}
