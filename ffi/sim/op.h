/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated operation as its users see it: every rank's buffers, and what they must
 * contain at the end.
 *
 * The buffers of a rank lie between guards, which nothing may write to. When the rank
 * has its buffers back they are filled with a pattern, and from then on nothing may
 * write to them either.
 */
#ifndef MMC_SIM_OP_H
#define MMC_SIM_OP_H

#include <mpimcast/mmc.h>

#include "core/plan/layout.h"
#include "support/prng.h"

/* The arguments that are equal on all ranks, and how the others are drawn. */
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
	uint8_t *table; /* memory that the layout uses, or NULL */
	uint8_t *truth; /* the right bytes of all blocks, in rank order */
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

/* Lays out a rank's buffers in `memory`, `part_bytes` long, which outlives the run. */
void mmc_sim_op_lay_out(struct mmc_sim_op *op, uint32_t rank, uint8_t *memory);

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

/* Fills a rank's buffers with the pattern of buffers that the rank has back. */
void mmc_sim_op_release(struct mmc_sim_op *op, uint32_t rank);

/* Returns whether a rank's buffers are as mmc_sim_op_release() has left them. */
bool mmc_sim_op_is_untouched(const struct mmc_sim_op *op, uint32_t rank);

#endif
