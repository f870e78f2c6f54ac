/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first bytes of the input choose a group: its numbers of data and parity chunks, their
 * length and that of the last one. Bits then say which data chunks are lost and which rows
 * have come. What remains is the data, over and over. What is lost must be mended.
 */
#include "code/code.h"
#include "fuzz.h"

#define CHUNKS_MAX 16

struct input {
	const uint8_t *data;
	size_t size;
	size_t next;
};

static uint8_t take(struct input *input)
{
	return input->size == 0 ? 0 : input->data[input->next++ % input->size];
}

/* Takes a number from 1 to `limit`. */
static unsigned take_number(struct input *input, unsigned limit)
{
	return 1 + take(input) % limit;
}

static uint8_t *take_chunk(struct input *input, size_t nbytes)
{
	uint8_t *chunk = malloc(nbytes);

	for (size_t i = 0; i < nbytes; i++)
		chunk[i] = take(input);
	return chunk;
}

/* Takes the numbers below `limit` whose bits are set, and returns how many there are. */
static unsigned take_set(struct input *input, unsigned limit, uint8_t *numbers)
{
	unsigned bits = take(input);
	unsigned count = 0;

	bits |= (unsigned)take(input) << 8;
	for (unsigned i = 0; i < limit; i++)
		if (bits >> i & 1)
			numbers[count++] = (uint8_t)i;
	return count;
}

static void check_mended(const struct mmc_code_group *group,
			 const struct mmc_code_loss *loss)
{
	uint8_t *chunks[CHUNKS_MAX];
	struct mmc_code_group mended = *group;

	memcpy(chunks, group->data, group->ndata * sizeof(chunks[0]));
	mended.data = chunks;
	for (unsigned i = 0; i < loss->count; i++)
		chunks[loss->columns[i]] =
			malloc(loss->columns[i] + 1u == group->ndata
				       ? group->last_bytes
				       : group->chunk_bytes);
	mmc_code_mend(&mmc_codec_plain, &mended, loss);
	for (unsigned i = 0; i < loss->count; i++) {
		unsigned column = loss->columns[i];

		MMC_ASSERT(memcmp(chunks[column], group->data[column],
				  column + 1 == group->ndata
					  ? group->last_bytes
					  : group->chunk_bytes) == 0);
		free(chunks[column]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { .data = data, .size = size };
	unsigned ndata = take_number(&input, CHUNKS_MAX);
	unsigned nparity = take_number(&input, CHUNKS_MAX);
	size_t chunk_bytes = take_number(&input, 40);
	size_t last_bytes = take_number(&input, (unsigned)chunk_bytes);
	uint8_t columns[CHUNKS_MAX];
	uint8_t rows[CHUNKS_MAX];
	unsigned nlost = take_set(&input, ndata, columns);
	unsigned nrows = take_set(&input, nparity, rows);
	uint8_t *chunks[CHUNKS_MAX];
	uint8_t *parity[CHUNKS_MAX];
	const uint8_t *arrived[CHUNKS_MAX];
	const struct mmc_code_group group = { chunks, ndata, chunk_bytes,
					      last_bytes };

	for (unsigned i = 0; i < ndata; i++)
		chunks[i] = take_chunk(&input, i + 1 == ndata ? last_bytes
							      : chunk_bytes);
	for (unsigned i = 0; i < nparity; i++)
		parity[i] = malloc(chunk_bytes);
	mmc_code_encode(&mmc_codec_plain, &group,
			&(struct mmc_code_rows){ 0, nparity, parity });
	for (unsigned i = 0; i < nrows; i++)
		arrived[i] = parity[rows[i]];
	if (nlost >= 1 && nlost <= nrows)
		check_mended(&group, &(struct mmc_code_loss){ columns, rows,
							      arrived, nlost });
	for (unsigned i = 0; i < ndata; i++)
		free(chunks[i]);
	for (unsigned i = 0; i < nparity; i++)
		free(parity[i]);
	return 0;
}
