/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets arrivals gather before they are taken in: a rank that wakes up for each batch of
 * chunks on a link that is slower than its processor spends most of its time on that.
 */
#ifndef MMC_CORE_OPERATION_COALESCING_H
#define MMC_CORE_OPERATION_COALESCING_H

#include "core/operation/op.h"

/* It is not worth while to wait for less than this, nor harmless to wait for more. */
#define MMC_COALESCING_MIN_NS (200 * MMC_US_NS)
#define MMC_COALESCING_MAX_NS (2 * MMC_MS_NS)

/*
 * Returns for how long chunks that arrive for the operation may lie in receive buffers,
 * as long as control messages are taken in at once: the time in which an eighth of
 * the window comes in, or a half of what is missing. Returns 0 if each has to be taken in
 * at once, or MMC_NEVER_NS if the operation awaits none.
 */
uint64_t mmc_op_coalescing_ns(const struct mmc_op *op);

#endif
