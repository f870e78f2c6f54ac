/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated operation as its users see it: every rank's buffers, what they must
 * contain in the end, and when they must not be written.
 *
 * The buffers of a rank lie between guards. They are filled with poison when the rank
 * has them back, and nothing may write to them from then on.
 */
#ifndef MMC_SIM_OP_H
#define MMC_SIM_OP_H

#include <mpimcast/mmc.h>

#include "core/plan/layout.h"
#include "support/prng.h"

/* The arguments that the ranks have agreed on. */
struct mmc_sim_shape {
	enum mmc_kind kind;
	uint32_t root;
	uint32_t nranks;
	uint32_t chunk_bytes;
	uint64_t block_bytes;
	uint64_t *blocks_bytes; /* of an Allgatherv; freed with the operation */
	bool in_place;		/* some ranks use MPI_IN_PLACE */
	bool gaps;		/* of an Allgatherv: each rank draws offsets */
};

struct mmc_sim_op {
	struct mmc_sim_shape shape;
	struct mmc_layout layout;
	uint8_t *table; /* memory of the layout */
	uint8_t *truth; /* all blocks in rank order */
	uint64_t truth_bytes;
	uint64_t send_bytes;   /* the longest block */
	uint64_t result_bytes; /* the blocks and the gaps between them */
	uint64_t *offsets;     /* [nranks][nranks]; NULL: no gaps */
	uint8_t *image;	       /* a right result, to compare with */
	uint8_t **parts;       /* each rank's buffers and guards */
	uint64_t part_bytes;   /* of each part */
	bool *in_place;	       /* per rank: its block lies in the result */
};

/*
 * Makes an operation with blocks drawn from `seed`; its buffers have no memory yet.
 * Returns 0, -MMC_EINVAL or -MMC_ENOMEM.
 */
int mmc_sim_op_init(struct mmc_sim_op *op, const struct mmc_sim_shape *shape,
		    uint64_t seed);

void mmc_sim_op_free(struct mmc_sim_op *op);

/* Makes a rank's buffers in `memory`, `part_bytes` long, which outlives the run. */
void mmc_sim_op_lay(struct mmc_sim_op *op, uint32_t rank, uint8_t *memory);

/* Returns the arguments of `rank`, which point into `op`. */
struct mmc_operation mmc_sim_op_arguments(const struct mmc_sim_op *op,
					  uint32_t rank);

/* Returns what is wrong with the buffers of a rank that succeeded, or NULL. */
const char *mmc_sim_op_flaw(const struct mmc_sim_op *op, uint32_t rank);

/*
 * Returns what is wrong with the buffers of a rank that failed, or NULL. Every chunk
 * must be right or untouched, except that with zero-copy receive anything may have
 * arrived in its place.
 */
const char *mmc_sim_op_failed_flaw(const struct mmc_sim_op *op, uint32_t rank,
				   bool zero_copy);

/* Fills a rank's buffers with poison: the library must not touch them any more. */
void mmc_sim_op_poison(struct mmc_sim_op *op, uint32_t rank);

/* Returns whether nothing was written to poisoned buffers. */
bool mmc_sim_op_poisoned(const struct mmc_sim_op *op, uint32_t rank);

#endif
