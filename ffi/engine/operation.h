/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kinds of operations have in common, and what sets them apart. */
#ifndef MMC_ENGINE_OPERATION_H
#define MMC_ENGINE_OPERATION_H

#include <mpimcast/mmc.h>

#include "core/operation/op.h"

/* Returns 0, or -MMC_EINVAL with a sentence if it makes no sense. */
int mmc_operation_check(const struct mmc_operation *operation, uint32_t nranks);

/* Fills in what the core is to know of it. */
void mmc_operation_configure(const struct mmc_operation *operation,
			     uint32_t nranks, struct mmc_op_config *config);

/* The bytes of the tables that it comes with. */
size_t mmc_operation_bytes(const struct mmc_operation *operation,
			   uint32_t nranks);

/*
 * Copies it with its tables, which are put in `memory`, mmc_operation_bytes()
 * long. Where blocks lie one behind the other in user memory the copy has no
 * offsets, and `recv` is where the first begins.
 */
void mmc_operation_copy(struct mmc_operation *copy,
			const struct mmc_operation *operation, uint32_t nranks,
			void *memory);

/* The bytes of the block of `rank`. */
uint64_t mmc_operation_block(const struct mmc_operation *operation,
			     uint32_t rank);

/* The bytes of all blocks. */
uint64_t mmc_operation_total(const struct mmc_operation *operation,
			     uint32_t nranks);

/* Where in `recv` the block of `rank` begins. */
uint64_t mmc_operation_offset(const struct mmc_operation *operation,
			      uint32_t rank);

/* Says in `failure` how operations differ that were started as one. */
void mmc_operation_differ(const struct mmc_terms *terms,
			  struct mmc_failure *failure);

#endif
