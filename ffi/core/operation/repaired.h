/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that come otherwise than in their turn: they are lost no more. */
#ifndef MMC_CORE_OPERATION_REPAIRED_H
#define MMC_CORE_OPERATION_REPAIRED_H

#include "core/operation/op.h"

/* Accounts for a chunk of `block` that was claimed as a repair, by a read or as mended. */
void mmc_op_note_repaired(struct mmc_op *op, const struct mmc_block *block,
			  uint32_t chunk, uint64_t now_ns);

/*
 * Tells flow control how many chunks of each chain take no more room in receive
 * buffers: those that are here, late or lost.
 */
void mmc_op_update_drained(struct mmc_op *op);

#endif
