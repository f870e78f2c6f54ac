/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an operation is to be polled. A poll looks at everything that may be due, so most
 * chunks that arrive, and most batches that this rank sends, must do without one.
 * Therefore the poll notes when the next one is due, and what happens in between makes
 * that earlier only if it lets something happen that no deadline foresees.
 */
#ifndef MMC_CORE_OPERATION_DUE_H
#define MMC_CORE_OPERATION_DUE_H

#include "core/operation/op.h"

/* Has the operation polled as soon as possible. */
static inline void mmc_op_wake(struct mmc_op *op)
{
	op->due_ns = 0;
}

/* Wakes the operation if what it knows of its chains asks for a poll. */
static inline void mmc_op_wake_if_stirred(struct mmc_op *op)
{
	if (op->repair.loss.stirred || op->watermark.moved)
		mmc_op_wake(op);
}

/*
 * Records that the operation has advanced, as barrier/liveness.h defines it. So the next
 * mmc_op_poll_liveness() counts the waits from now on.
 */
static inline void mmc_op_mark_advanced(struct mmc_op *op, uint64_t now_ns)
{
	op->advanced_ns = now_ns;
}

/* Returns when the operation is to be polled next although nothing happens. */
static inline uint64_t mmc_op_due_ns(const struct mmc_op *op)
{
	return op->sends ? 0 : op->due_ns;
}

#endif
