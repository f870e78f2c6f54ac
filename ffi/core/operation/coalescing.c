/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/coalescing.h"

#include "support/bits.h"

/* The shares of the window and of what is missing that may gather. */
#define WINDOW_PART 8
#define MISSING_PART 2

uint64_t mmc_op_coalescing_ns(const struct mmc_op *op)
{
	const struct mmc_path *path = op->config.path;
	uint64_t window_bytes = op->record.terms.window_bytes;
	uint64_t missing_chunks = op->layout.nchunks - op->npresent;
	uint64_t gathered_bytes;
	uint64_t time_ns;

	if (op->state > MMC_OP_RELEASE)
		return MMC_NEVER_NS;
	/* Where processors are the limit, a rank that sleeps wastes what limits it. */
	if (op->state != MMC_OP_FLOW || op->mode != MMC_OP_STAGED ||
	    !path->measured || path->window.widening > 0)
		return 0;
	gathered_bytes = mmc_min_u64(window_bytes / WINDOW_PART,
				     missing_chunks * op->config.chunk_bytes /
					     MISSING_PART);
	time_ns = mmc_path_time_ns(path, gathered_bytes);
	return time_ns < MMC_COALESCING_MIN_NS
		       ? 0
		       : mmc_min_u64(time_ns, MMC_COALESCING_MAX_NS);
}
