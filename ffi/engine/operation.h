/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of an operation. All that depends on its kind (Allgather, Allgatherv,
 * Bcast) is decided here: for the core, operations differ only in their blocks.
 */
#ifndef MMC_ENGINE_OPERATION_H
#define MMC_ENGINE_OPERATION_H

#include <mpimcast/mmc.h>

#include "core/operation/op.h"

/*
 * Checks the arguments of an operation. Returns 0, or -MMC_EINVAL with the reason in
 * mmc_last_error().
 */
int mmc_operation_check(const struct mmc_operation *operation, uint32_t nranks);

/*
 * Writes the fields of `config` that the operation determines: signature, block sizes,
 * and the root of a Bcast. `config` points to the operation's table of sizes.
 */
void mmc_operation_configure(const struct mmc_operation *operation,
			     uint32_t nranks, struct mmc_op_config *config);

/* Returns how many bytes the tables of sizes and offsets take: 0 without tables. */
size_t mmc_operation_bytes(const struct mmc_operation *operation,
			   uint32_t nranks);

/*
 * Copies an operation, and its tables into `memory`, mmc_operation_bytes() long. If the
 * blocks are adjacent in user memory, the copy has no offsets, and its `recv` is where
 * the first block begins.
 */
void mmc_operation_copy(struct mmc_operation *copy,
			const struct mmc_operation *operation, uint32_t nranks,
			void *memory);

/* Returns the size in bytes of the block of `rank`. */
uint64_t mmc_operation_block(const struct mmc_operation *operation,
			     uint32_t rank);

/* Returns the size in bytes of all blocks together. */
uint64_t mmc_operation_total(const struct mmc_operation *operation,
			     uint32_t nranks);

/* Returns at how many bytes from `recv` the block of `rank` begins. */
uint64_t mmc_operation_offset(const struct mmc_operation *operation,
			      uint32_t rank);

/*
 * Writes to the pairs of fields of `failure`, such as `root_min` and `root_max`, how
 * the operations differ that ranks have started in the same epoch.
 */
void mmc_operation_describe_mismatch(const struct mmc_terms *terms,
				     struct mmc_failure *failure);

#endif
