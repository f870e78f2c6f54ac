/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated operation as its users see it: every rank's buffers, what must
 * be in them in the end, and what must not be written when.
 *
 * The buffers of a rank lie between guards. They are poisoned when the rank has
 * them back, and nothing may touch them from then on.
 */
#ifndef MMC_SIM_OP_H
#define MMC_SIM_OP_H

#include <mpimcast/mmc.h>

#include "core/plan/layout.h"
#include "support/prng.h"

/* What the ranks have agreed on. */
struct mmc_sim_shape {
	enum mmc_kind kind;
	uint32_t root;
	uint32_t nranks;
	uint32_t chunk_bytes;
	uint64_t block_bytes;
	uint64_t *blocks_bytes; /* of an Allgatherv; taken over */
	bool in_place;		/* some use MPI_IN_PLACE */
	bool gaps; /* of an Allgatherv: and places of their own for blocks */
};

struct mmc_sim_op {
	struct mmc_sim_shape shape;
	struct mmc_layout layout;
	uint8_t *table; /* of the layout */
	uint8_t *truth; /* all blocks in rank order */
	uint64_t truth_bytes;
	uint64_t send_bytes;   /* the longest block */
	uint64_t result_bytes; /* the blocks, and gaps between them */
	uint64_t *offsets;     /* [nranks][nranks]; NULL: no gaps */
	uint8_t *image;	       /* of one result, to compare with */
	uint8_t **parts;       /* each rank's buffers and guards */
	uint64_t part_bytes;   /* of each */
	bool *in_place;	       /* per rank: the block lies in the result */
};

/*
 * Makes an operation, whose buffers have no memory yet, with blocks drawn from
 * `seed`. Returns 0, -MMC_EINVAL or -MMC_ENOMEM.
 */
int mmc_sim_op_init(struct mmc_sim_op *op, const struct mmc_sim_shape *shape,
		    uint64_t seed);

void mmc_sim_op_free(struct mmc_sim_op *op);

/* Makes a rank's buffers in `part_bytes` of memory, which outlive the run. */
void mmc_sim_op_lay(struct mmc_sim_op *op, uint32_t rank, uint8_t *memory);

/* The arguments of `rank`, which point into `op`. */
struct mmc_operation mmc_sim_op_arguments(const struct mmc_sim_op *op,
					  uint32_t rank);

/* What is wrong with the buffers of a rank that succeeded; NULL: nothing. */
const char *mmc_sim_op_flaw(const struct mmc_sim_op *op, uint32_t rank);

/*
 * Likewise of a rank that failed: every chunk must be right or untouched, unless
 * with zero-copy receive anything may have come to its place.
 */
const char *mmc_sim_op_failed_flaw(const struct mmc_sim_op *op, uint32_t rank,
				   bool zero_copy);

/* Takes the buffers back from the library: fills them with poison. */
void mmc_sim_op_poison(struct mmc_sim_op *op, uint32_t rank);

/* Whether nothing was written since. */
bool mmc_sim_op_poisoned(const struct mmc_sim_op *op, uint32_t rank);

#endif
