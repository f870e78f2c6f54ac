/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and mends groups as fast as one core can. See bench/codes.py. */
#include <mpimcast/code.h>
#include <stdlib.h>
#include <time.h>

#include "code/code.h"

enum {
	ENCODE,
	MEND,
};

static uint8_t memory[MMC_CODE_CHUNKS_MAX][1 << 16]
	__attribute__((aligned(64)));

/* Returns this process's processor time. */
static double processor_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Repeats what is measured; returns whether all data is what it was before. */
static int repeat(const struct mmc_code_group *group,
		  const struct mmc_code_rows *rows, int act, unsigned count)
{
	const struct mmc_codec *codec = mmc_codec_choose();
	uint8_t numbers[MMC_CODE_CHUNKS_MAX];
	const struct mmc_code_loss loss = {
		.columns = numbers,
		.rows = numbers,
		.parity = (const uint8_t *const *)rows->parity,
		.count = rows->count,
	};

	for (unsigned i = 0; i < rows->count; i++)
		numbers[i] = (uint8_t)i;
	for (unsigned i = 0; i < count; i++) {
		if (act == ENCODE)
			mmc_code_encode(codec, group, rows);
		else
			mmc_code_mend(codec, group, &loss);
	}
	return group->data[0][0] == 1;
}

/*
 * Returns the bytes of data, of groups of `ndata` chunks of `nbytes`, of which `nparity` parity
 * chunks are computed (`act` 0), or that are complete once the first `nparity` data chunks
 * have been mended (1), in a second of processor time; 0 if the data is wrong then.
 */
double mmc_bench_codes(unsigned ndata, unsigned nparity, unsigned nbytes,
		       int act, unsigned count);

double mmc_bench_codes(unsigned ndata, unsigned nparity, unsigned nbytes,
		       int act, unsigned count)
{
	uint8_t *chunks[MMC_CODE_CHUNKS_MAX];
	const struct mmc_code_group group = { chunks, ndata, nbytes, nbytes };
	const struct mmc_code_rows rows = { 0, nparity, chunks + ndata };
	double begin_s;
	int right;

	for (unsigned i = 0; i < ndata + nparity; i++) {
		/* As in a block: one chunk begins where the one before ends. */
		chunks[i] = &memory[0][0] + (size_t)i * nbytes;
		for (unsigned at = 0; at < nbytes && i < ndata; at++)
			chunks[i][at] = (uint8_t)(1 + i + at);
	}
	repeat(&group, &rows, ENCODE, 1);
	begin_s = processor_s();
	right = repeat(&group, &rows, act, count);
	return right ? (double)ndata * nbytes * count /
			       (processor_s() - begin_s)
		     : 0;
}
