/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a stream, what it has under way, and the bytes of the input. */
#ifndef MMC_TESTS_OP_WORLD_H
#define MMC_TESTS_OP_WORLD_H

#include "core/operation/epochs.h"
#include "core/operation/parity.h"
#include "fuzz.h"
#include "support/memory.h"

/* Small enough that a short input reaches the limits of the core. */
#define EPOCHS_MAX 12
#define NRANKS_MAX 9
#define PLACING_MAX 64
#define READING_MAX 256
#define CHUNK_BYTES 8

/* The generation of the memory that honest ranks advertise. */
#define GENERATION 9

/* What is left of the input. */
struct input {
	const uint8_t *data;
	size_t size;
};

struct epoch {
	struct mmc_op *op; /* NULL before its start and once closed */
	void *memory;	   /* the operation's */
	uint32_t nsending; /* chunks that are being sent */
	bool over;	   /* the user has the buffers back */
	bool retained;	   /* a copy of this rank's block was taken */
};

/* A placement that is under way. */
struct placing {
	uint32_t epoch;
	uint32_t chunk;
};

/* A read that is under way. */
struct reading {
	uint32_t epoch;
	bool map; /* of the bitmap, not of chunks */
	struct mmc_run run;
};

struct world {
	struct input input;
	struct mmc_op_config config;
	uint64_t blocks_bytes[NRANKS_MAX]; /* if the blocks differ in size */
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct epoch epoch[EPOCHS_MAX + 1];
	struct placing placing[PLACING_MAX];
	uint32_t nplacing;
	struct reading reading[READING_MAX];
	uint32_t nreading;
	uint64_t now_ns;
};

/* Takes a big-endian number of `nbytes` from the input, fewer if that ends. */
static inline uint32_t take(struct input *input, unsigned nbytes)
{
	uint32_t value = 0;

	while (nbytes-- > 0 && input->size > 0) {
		value = value << 8 | *input->data++;
		input->size--;
	}
	return value;
}

/* ---- the shape of a world ------------------------------------------------- */

/*
 * Chooses who has a block: all ranks, of equal size; the root alone; or each rank, of
 * different sizes, some of them empty.
 */
static inline void share_out(struct world *world, uint32_t how)
{
	struct mmc_op_config *config = &world->config;

	if (how % 4 == 2) {
		config->sole = true;
		config->root = how / 4 % config->nranks;
	} else if (how % 4 == 3) {
		config->blocks_bytes = world->blocks_bytes;
		for (uint32_t r = 0; r < config->nranks; r++)
			world->blocks_bytes[r] =
				(r + how) % 3 == 0
					? 0
					: config->block_bytes * (r + 1) % 60;
	}
}

/*
 * Takes the settings of the operations, and this rank's number, from the first bytes.
 */
static inline void shape(struct world *world)
{
	struct input *input = &world->input;
	uint32_t first = take(input, 1);
	uint32_t nranks = first % NRANKS_MAX + 1;
	uint32_t flags = take(input, 1);
	uint32_t block_bytes = take(input, 1);

	world->config = (struct mmc_op_config){
		.nranks = nranks,
		.signature = 7,
		.block_bytes = block_bytes % 100,
		.chunk_bytes = CHUNK_BYTES,
		.nchains = take(input, 1) % (nranks + 1),
		.window_bytes = take(input, 2),
		.eager_bytes = flags & 1 ? 1000 : 0,
		.code_data = flags & 128 ? 1 + block_bytes % 5 : 0,
		.code_parity = block_bytes / 5 % 3,
		.reliability = (enum mmc_reliability)(block_bytes % 4),
		.carried_bytes = block_bytes & 1 ? 30 : 0,
		.retain_bytes = flags & 2 ? 1000 : 0,
		.repair = flags & 16  ? MMC_REPAIR_READ
			  : flags & 4 ? MMC_REPAIR_NEIGHBOUR
				      : MMC_REPAIR_NAK,
		.read_bytes = flags & 32 ? 24 : 1000,
		.generation = flags & 64 ? 0 : 5,
		.timeout_ns = MMC_S_NS,
		.entry_timeout_ns = flags & 8 ? MMC_S_NS / 2 : 0,
		.late_timeout_ns = 2 * MMC_S_NS,
		.inquires = true,
		.unattended = block_bytes >= 200,
	};
	world->config.source_bytes = world->config.window_bytes;
	share_out(world, first / NRANKS_MAX);
	world->epochs_memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_epochs_bytes(nranks));
	mmc_epochs_init(&world->epochs, world->epochs_memory, UINT64_C(3) << 16,
			take(input, 1) % nranks, nranks, &world->counters);
}

#endif
