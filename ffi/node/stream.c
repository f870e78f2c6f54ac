/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/stream.h"

void mmc_node_ring_attended(struct mmc_node_stream *stream)
{
	if (atomic_load(&stream->head->nattended) == 0)
		return;
	for (uint32_t i = 0; i < stream->node->nmembers; i++)
		if (i != stream->member)
			mmc_node_ring(stream->node, i);
}
