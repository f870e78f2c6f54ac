/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/places.h"

#include <string.h>

void mmc_node_lay_out(const struct mmc_node_request *request, uint32_t index)
{
	struct mmc_node_stream *stream = request->stream;
	const struct mmc_node_map *map = &stream->map;
	uint64_t end_bytes = 0;

	for (uint32_t node = 0; node < map->nnodes; node++) {
		uint64_t begin_bytes = end_bytes;

		for (uint32_t i = map->firsts[node]; i < map->firsts[node + 1];
		     i++) {
			uint32_t rank = map->order[i];

			stream->places[rank] = end_bytes;
			if (mmc_node_request_sends(request, rank))
				end_bytes += mmc_part_room_bytes(
					mmc_node_part(request, index, rank)
						.nbytes);
		}
		stream->nodes_bytes[node] = end_bytes - begin_bytes;
	}
}

void mmc_node_add_up(const struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	const struct mmc_node_map *map = &stream->map;

	memset(stream->nodes_bytes, 0,
	       map->nnodes * sizeof(*stream->nodes_bytes));
	for (uint32_t rank = 0; rank < map->nranks; rank++)
		stream->nodes_bytes[map->nodes[rank]] +=
			mmc_node_request_bytes(request, rank);
}
