/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a piece lie node by node in the slot, and do not overlap. */
#include "node/places.h"

#include "check.h"
#include "support/prng.h"

enum { NRANKS_MAX = 24, NCASES = 2000 };

/* A request with what places depend on; the rest of it and of its stream is 0. */
struct layout {
	uint32_t nodes[NRANKS_MAX];
	uint32_t order[NRANKS_MAX];
	uint32_t firsts[NRANKS_MAX + 1];
	uint64_t places[NRANKS_MAX];
	uint64_t nodes_bytes[NRANKS_MAX];
	uint64_t sizes[NRANKS_MAX];
	uint64_t slot_bytes;
	struct mmc_node_stream stream;
	struct mmc_node_request request;
};

/* How ranks are spread over nodes. */
enum map { BLOCK, CYCLIC, UNEVEN, SHUFFLED, NMAPS };

/* Returns the node of a rank; each node has at least one. */
static uint32_t node_of(enum map map, uint32_t rank, uint32_t nranks,
			uint32_t nnodes)
{
	switch (map) {
	case BLOCK:
		return rank * nnodes / nranks;
	case CYCLIC:
		return rank % nnodes;
	default:
		return rank < nnodes ? rank : nnodes - 1;
	}
}

static void draw_map(struct layout *layout, struct mmc_prng *prng)
{
	struct mmc_node_map *map = &layout->stream.map;
	enum map kind = (enum map)mmc_prng_below(prng, NMAPS);
	uint32_t n = 0;

	map->nranks = 1 + (uint32_t)mmc_prng_below(prng, NRANKS_MAX);
	map->nnodes = 1 + (uint32_t)mmc_prng_below(prng, map->nranks);
	for (uint32_t r = 0; r < map->nranks; r++)
		map->nodes[r] = node_of(kind, r, map->nranks, map->nnodes);
	for (uint32_t r = map->nranks; kind == SHUFFLED && r > 1; r--) {
		uint32_t other = (uint32_t)mmc_prng_below(prng, r);
		uint32_t node = map->nodes[r - 1];

		map->nodes[r - 1] = map->nodes[other];
		map->nodes[other] = node;
	}
	for (uint32_t node = 0; node < map->nnodes; node++) {
		map->firsts[node] = n;
		for (uint32_t r = 0; r < map->nranks; r++)
			if (map->nodes[r] == node)
				map->order[n++] = r;
	}
	map->firsts[map->nnodes] = n;
}

static void draw_operation(struct layout *layout, struct mmc_prng *prng)
{
	struct mmc_node_request *request = &layout->request;
	uint32_t nranks = layout->stream.map.nranks;

	request->stream = &layout->stream;
	request->operation.kind =
		MMC_ALLGATHER + (uint32_t)mmc_prng_below(prng, 3);
	request->operation.root = (uint32_t)mmc_prng_below(prng, nranks);
	for (uint32_t r = 0; r < nranks; r++)
		layout->sizes[r] = mmc_prng_below(prng, 4) == 0
					   ? 0
					   : mmc_prng_below(prng, 2000);
	request->pieces = (struct mmc_pieces){
		.block_bytes = layout->sizes[0],
		.nblocks = nranks,
	};
	if (request->operation.kind == MMC_BCAST)
		request->pieces.nblocks = 1;
	if (request->operation.kind == MMC_ALLGATHERV)
		request->pieces.blocks_bytes = layout->sizes;
	layout->slot_bytes = 64 * (nranks + mmc_prng_below(prng, 200));
	CHECK(mmc_pieces_cut(&request->pieces, layout->slot_bytes));
}

static void draw(struct layout *layout, struct mmc_prng *prng)
{
	memset(layout, 0, sizeof(*layout));
	layout->stream.map.nodes = layout->nodes;
	layout->stream.map.order = layout->order;
	layout->stream.map.firsts = layout->firsts;
	layout->stream.places = layout->places;
	layout->stream.nodes_bytes = layout->nodes_bytes;
	draw_map(layout, prng);
	draw_operation(layout, prng);
}

/* Returns how many bytes a rank puts into the slot of a piece. */
static uint64_t part_bytes(const struct layout *layout, uint32_t index,
			   uint32_t rank)
{
	const struct mmc_operation *operation = &layout->request.operation;

	if (operation->kind == MMC_BCAST && operation->root != rank)
		return 0;
	return mmc_node_part(&layout->request, index, rank).nbytes;
}

/* Checks one piece: which byte of the slot is whose, as copies would find it. */
static void check_piece(struct layout *layout, uint32_t index)
{
	static uint8_t owners[64 * (NRANKS_MAX + 200)];
	const struct mmc_node_map *map = &layout->stream.map;
	uint64_t begin_bytes = 0;

	memset(owners, 0xff, sizeof(owners));
	mmc_node_lay_out(&layout->request, index);
	for (uint32_t node = 0; node < map->nnodes; node++) {
		uint64_t end_bytes = begin_bytes + layout->nodes_bytes[node];

		CHECK_EQ(layout->nodes_bytes[node] % 64, 0);
		for (uint32_t r = 0; r < map->nranks; r++) {
			uint64_t nbytes = part_bytes(layout, index, r);

			if (map->nodes[r] != node || nbytes == 0)
				continue;
			CHECK_EQ(layout->places[r] % 64, 0);
			CHECK(layout->places[r] >= begin_bytes);
			CHECK(layout->places[r] + nbytes <= end_bytes);
			for (uint64_t b = 0; b < nbytes; b++)
				CHECK_EQ(owners[layout->places[r] + b], 0xff);
			memset(owners + layout->places[r], (int)r, nbytes);
		}
		begin_bytes = end_bytes;
	}
	CHECK(begin_bytes <= layout->slot_bytes);
}

static void parts_lie_node_by_node(void)
{
	static struct layout layout;
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < NCASES; i++) {
		draw(&layout, &prng);
		check_piece(&layout, 0);
		check_piece(&layout, layout.request.pieces.npieces / 2);
		check_piece(&layout, layout.request.pieces.npieces - 1);
	}
}

/* All ranks lay out a piece alike, whatever they have laid out before. */
static void every_rank_finds_the_same_places(void)
{
	static struct layout layout;
	static struct layout again;
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < 100; i++) {
		draw(&layout, &prng);
		again = layout;
		again.request.stream = &again.stream;
		again.stream.places = again.places;
		again.stream.nodes_bytes = again.nodes_bytes;
		mmc_node_lay_out(&layout.request, 0);
		mmc_node_lay_out(&again.request,
				 again.request.pieces.npieces - 1);
		mmc_node_lay_out(&again.request, 0);
		CHECK_BYTES(layout.places, again.places, sizeof(again.places));
		CHECK_BYTES(layout.nodes_bytes, again.nodes_bytes,
			    sizeof(again.nodes_bytes));
	}
}

/* A Bcast's part is the root's alone, at the beginning of the slot. */
static void only_the_root_has_a_part_of_a_bcast(void)
{
	static struct layout layout;
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < 200; i++) {
		const struct mmc_operation *operation =
			&layout.request.operation;

		draw(&layout, &prng);
		if (operation->kind != MMC_BCAST)
			continue;
		mmc_node_lay_out(&layout.request, 0);
		CHECK_EQ(layout.places[operation->root], 0);
		for (uint32_t n = 0; n < layout.stream.map.nnodes; n++) {
			bool has_root = n == layout.nodes[operation->root];
			uint64_t nbytes = layout.nodes_bytes[n];

			CHECK(has_root ? nbytes <= layout.slot_bytes
				       : nbytes == 0);
		}
	}
}

CHECK_MAIN(CHECK_TEST(parts_lie_node_by_node),
	   CHECK_TEST(every_rank_finds_the_same_places),
	   CHECK_TEST(only_the_root_has_a_part_of_a_bcast))
