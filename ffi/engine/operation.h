/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of operations: what they have in common, and where they differ. */
#ifndef MMC_ENGINE_OPERATION_H
#define MMC_ENGINE_OPERATION_H

#include <mpimcast/mmc.h>

#include "core/operation/op.h"

/* Checks an operation. Returns 0, or -MMC_EINVAL with the reason. */
int mmc_operation_check(const struct mmc_operation *operation, uint32_t nranks);

/* Fills in the fields of `config` that the operation determines. */
void mmc_operation_configure(const struct mmc_operation *operation,
			     uint32_t nranks, struct mmc_op_config *config);

/* Returns the bytes of an operation's tables of sizes and offsets. */
size_t mmc_operation_bytes(const struct mmc_operation *operation,
			   uint32_t nranks);

/*
 * Copies an operation with its tables, which are put in `memory`, mmc_operation_bytes()
 * long. If the blocks are adjacent in user memory, the copy has no offsets, and its
 * `recv` is where the first block begins.
 */
void mmc_operation_copy(struct mmc_operation *copy,
			const struct mmc_operation *operation, uint32_t nranks,
			void *memory);

/* Returns the bytes of the block of `rank`. */
uint64_t mmc_operation_block(const struct mmc_operation *operation,
			     uint32_t rank);

/* Returns the bytes of all blocks. */
uint64_t mmc_operation_total(const struct mmc_operation *operation,
			     uint32_t nranks);

/* Returns where in `recv` the block of `rank` begins. */
uint64_t mmc_operation_offset(const struct mmc_operation *operation,
			      uint32_t rank);

/* Writes to `failure` how the operations differ that ranks have started as one. */
void mmc_operation_differ(const struct mmc_terms *terms,
			  struct mmc_failure *failure);

#endif
