/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/landing.h"

#include <stdlib.h>
#include <string.h>

#include "node/segment.h"
#include "support/present.h"

/* What a bit stands for at most: results in place may be one long piece. */
#define CHUNK_BYTES_MAX (UINT64_C(1) << 20)

static uint64_t chunks_of(uint64_t nbytes, uint64_t chunk_bytes)
{
	return (nbytes + chunk_bytes - 1) / chunk_bytes;
}

/* Sets where the chunks of each block begin; returns how many there are. */
static uint32_t number_chunks(const struct mmc_node_request *request,
			      struct mmc_node_landing *landing)
{
	uint64_t nchunks = 0;

	for (uint32_t i = 0; i < landing->nblocks; i++) {
		landing->firsts[i] = (uint32_t)nchunks;
		nchunks += chunks_of(mmc_node_request_bytes(
					     request, landing->first_rank + i),
				     landing->chunk_bytes);
	}
	return (uint32_t)nchunks;
}

static struct mmc_node_landing *new_landing(uint32_t nblocks)
{
	size_t head_bytes = (sizeof(struct mmc_node_landing) + 7) / 8 * 8;
	uint8_t *memory =
		calloc(1, head_bytes + nblocks * 2 * sizeof(uint64_t));
	struct mmc_node_landing *landing = (void *)memory;

	if (memory == NULL)
		return NULL;
	landing->nblocks = nblocks;
	landing->present_bytes = (void *)(memory + head_bytes);
	landing->order = (void *)(landing->present_bytes + nblocks);
	landing->firsts = landing->order + nblocks;
	return landing;
}

/* Allocates a bit for each chunk. Returns whether there was enough memory. */
static bool allocate_bits(struct mmc_node_landing *landing, uint32_t nchunks)
{
	landing->words = calloc(nchunks / 64 + 1, sizeof(*landing->words));
	if (landing->words == NULL)
		return false;
	landing->bits = mmc_present_new((void *)landing->words,
					(const void *)landing->words, nchunks);
	if (landing->bits == NULL)
		free((void *)landing->words);
	return landing->bits != NULL;
}

/* Sets the bits of a block's chunks from number `from` on, but for those from `to` on. */
static void set_bits(struct mmc_node_landing *landing, uint64_t from,
		     uint64_t to)
{
	for (uint64_t chunk = from; chunk < to; chunk++)
		atomic_fetch_or_explicit(&landing->words[chunk / 64],
					 UINT64_C(1) << chunk % 64,
					 memory_order_release);
}

/* Records that the first `present_bytes` of a rank's block are in their place. */
static void note(struct mmc_node_request *request, uint32_t rank,
		 uint64_t present_bytes)
{
	struct mmc_node_landing *landing = request->landing;
	uint32_t block = rank - landing->first_rank;
	uint64_t nbytes = mmc_node_request_bytes(request, rank);
	uint64_t chunk_bytes = landing->chunk_bytes;
	uint64_t before, first;

	if (block >= landing->nblocks)
		return;
	before = atomic_load_explicit(&landing->present_bytes[block],
				      memory_order_relaxed);
	present_bytes = mmc_min_u64(present_bytes, nbytes);
	if (present_bytes <= before)
		return;
	atomic_store_explicit(&landing->present_bytes[block], present_bytes,
			      memory_order_release);
	first = landing->firsts[block];
	set_bits(landing, first + before / chunk_bytes,
		 first + (present_bytes == nbytes
				  ? chunks_of(nbytes, chunk_bytes)
				  : present_bytes / chunk_bytes));
	if (present_bytes < nbytes)
		return;
	landing->order[landing->nlanded] = rank;
	atomic_fetch_add_explicit(&landing->nlanded, 1, memory_order_release);
	if (landing->tells)
		mmc_node_ring(request->stream->node, request->stream->member);
}

/* Lands the blocks that are there at the start: this rank's if in place, empty ones. */
static void land_first(struct mmc_node_request *request)
{
	struct mmc_node_landing *landing = request->landing;
	uint32_t own = request->stream->options.rank;

	/* This rank's comes first, so the others follow it in the order of ranks. */
	for (uint32_t i = 0; i < landing->nblocks; i++) {
		uint32_t rank =
			landing->first_rank +
			(own - landing->first_rank + i) % landing->nblocks;

		if (mmc_node_request_bytes(request, rank) == 0)
			landing->order[landing->nlanded++] = rank;
		else if (rank == own && request->operation.send == NULL)
			note(request, own, UINT64_MAX);
	}
}

int mmc_node_landing_begin(struct mmc_node_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	bool is_sole = operation->kind == MMC_BCAST;
	struct mmc_node_landing *landing =
		new_landing(is_sole ? 1 : request->stream->options.nranks);

	if (landing == NULL)
		return -MMC_ENOMEM;
	landing->first_rank = is_sole ? operation->root : 0;
	landing->chunk_bytes = mmc_max_u64(
		mmc_min_u64(request->pieces.part_bytes, CHUNK_BYTES_MAX), 1);
	if (!allocate_bits(landing, number_chunks(request, landing))) {
		free(landing);
		return -MMC_ENOMEM;
	}
	request->landing = landing;
	land_first(request);
	return 0;
}

void mmc_node_landing_end(struct mmc_node_request *request)
{
	if (request->landing == NULL)
		return;
	mmc_present_free(request->landing->bits);
	free(request->landing);
	request->landing = NULL;
}

/* Returns where the parts end of a piece that is no range of a node's blocks. */
static uint64_t end_of(const struct mmc_node_request *request, uint32_t index)
{
	return (index + UINT64_C(1)) * request->pieces.part_bytes;
}

void mmc_node_landing_note_member(struct mmc_node_request *request,
				  uint32_t index, uint32_t rank)
{
	bool in_place = request->delivery == MMC_NODE_IN_PLACE;

	if (request->landing != NULL)
		note(request, rank,
		     in_place ? UINT64_MAX : end_of(request, index));
}

void mmc_node_landing_note_piece(struct mmc_node_request *request,
				 uint32_t index)
{
	const struct mmc_node_map *map = &request->stream->map;
	uint32_t own_node = map->nodes[request->stream->options.rank];
	bool in_place = request->delivery == MMC_NODE_IN_PLACE;
	uint64_t end = end_of(request, index);

	if (request->landing == NULL)
		return;
	for (uint32_t node = 0; node < map->nnodes; node++) {
		/* In place, a piece is a range of all blocks of a node together. */
		uint64_t begin = 0;

		for (uint32_t i = map->firsts[node]; i < map->firsts[node + 1];
		     i++) {
			uint32_t rank = map->order[i];

			if (!mmc_node_request_sends(request, rank))
				continue;
			if (in_place && node == own_node)
				note(request, rank, UINT64_MAX);
			else if (end > begin)
				note(request, rank, end - begin);
			if (in_place)
				begin += mmc_node_request_bytes(request, rank);
		}
	}
}

void mmc_node_landing_note_all(struct mmc_node_request *request)
{
	if (request->landing == NULL)
		return;
	for (uint32_t i = 0; i < request->landing->nblocks; i++)
		note(request, request->landing->first_rank + i, UINT64_MAX);
}

uint64_t mmc_node_landing_bytes(const struct mmc_node_landing *landing,
				uint32_t rank)
{
	uint32_t block = rank - landing->first_rank;

	return block < landing->nblocks
		       ? atomic_load_explicit(&landing->present_bytes[block],
					      memory_order_acquire)
		       : 0;
}

bool mmc_node_landing_rank(const struct mmc_node_landing *landing,
			   uint32_t index, uint32_t *rank)
{
	if (index >=
	    atomic_load_explicit(&landing->nlanded, memory_order_acquire))
		return false;
	*rank = landing->order[index];
	return true;
}
