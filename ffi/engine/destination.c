/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/destination.h"

#include "engine/state.h"

struct mmc_destination mmc_request_destination(const void *context,
					       uint32_t source)
{
	const struct mmc_request *request = context;
	const struct mmc_op *op = request->op;
	const uint64_t *offsets_bytes = request->operation.offsets_bytes;
	struct mmc_block block = mmc_layout_block(&op->layout, source);
	uint8_t *memory = request->base + (offsets_bytes != NULL
						   ? offsets_bytes[source]
						   : block.offset_bytes);

	return (struct mmc_destination){
		.memory = source == op->config.rank ? NULL : memory,
		.nbytes = block.nbytes,
		.first = block.first,
	};
}
