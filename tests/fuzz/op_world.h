/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a stream, what it has under way, and the bytes of the input. */
#ifndef MMC_TESTS_OP_WORLD_H
#define MMC_TESTS_OP_WORLD_H

#include "core/epochs.h"
#include "core/memory.h"
#include "fuzz.h"

#define EPOCHS_MAX 12
#define NRANKS_MAX 9
#define PLACING_MAX 64
#define READING_MAX 256
#define CHUNK_BYTES 8
#define GENERATION 9

struct input {
	const uint8_t *data;
	size_t size;
};

struct epoch {
	struct mmc_op *op; /* NULL before its start and after its end */
	void *memory;
	uint32_t nsending;
	bool over;
	bool retained;
};

struct placing {
	uint32_t epoch;
	uint32_t chunk;
};

struct reading {
	uint32_t epoch;
	bool map;
	struct mmc_run run;
};

struct world {
	struct input input;
	struct mmc_op_config config;
	uint64_t blocks_bytes[NRANKS_MAX]; /* if uneven */
	struct mmc_epochs epochs;
	struct mmc_counters counters;
	struct epoch epoch[EPOCHS_MAX + 1];
	struct placing placing[PLACING_MAX];
	uint32_t nplacing;
	struct reading reading[READING_MAX];
	uint32_t nreading;
	uint64_t now_ns;
};

static inline uint32_t take(struct input *input, unsigned nbytes)
{
	uint32_t value = 0;

	while (nbytes-- > 0 && input->size > 0) {
		value = value << 8 | *input->data++;
		input->size--;
	}
	return value;
}

#endif
