/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/op.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64

/* Three different bytes: they fill guards, results at first, and released buffers. */
enum { GUARD = 0xa7, UNTOUCHED = 0x5c, RELEASED = 0xd1 };

/* The most bytes between two blocks. */
#define GAP_BYTES_MAX 16

/* A rank's part consists of guard, block to send, guard, result, guard. */
static uint8_t *part(const struct mmc_sim_op *op, uint32_t rank)
{
	return op->parts[rank];
}

static uint8_t *send_block(const struct mmc_sim_op *op, uint32_t rank)
{
	return part(op, rank) + GUARD_BYTES;
}

static uint8_t *result(const struct mmc_sim_op *op, uint32_t rank)
{
	return send_block(op, rank) + op->send_bytes + GUARD_BYTES;
}

/* Returns where the block of `owner` begins in the result of `rank`. */
static uint64_t place(const struct mmc_sim_op *op, uint32_t rank,
		      uint32_t owner)
{
	if (op->offsets)
		return op->offsets[rank * op->layout.nranks + owner];
	return mmc_layout_block(&op->layout, owner).offset_bytes;
}

/* ---- making -------------------------------------------------------------- */

static void fill_truth(struct mmc_sim_op *op, uint64_t seed)
{
	struct mmc_prng prng = { .state = seed };

	for (uint64_t at = 0; at < op->truth_bytes; at += sizeof(uint64_t)) {
		uint64_t word = mmc_prng_next(&prng);
		uint64_t left = op->truth_bytes - at;

		memcpy(op->truth + at, &word, left < 8 ? left : 8);
	}
}

/* Draws the offsets of a rank: in rank order for some ranks, reversed for others. */
static void draw_offsets(struct mmc_sim_op *op, struct mmc_prng *prng,
			 uint32_t rank)
{
	uint32_t nranks = op->layout.nranks;
	uint64_t *offsets = op->offsets + rank * nranks;
	bool backwards = mmc_prng_below(prng, 2);
	uint64_t gap_bytes = mmc_prng_below(prng, 2) * GAP_BYTES_MAX;
	uint64_t at = 0;

	for (uint32_t i = 0; i < nranks; i++) {
		uint32_t owner = backwards ? nranks - 1 - i : i;

		at += mmc_prng_below(prng, gap_bytes + 1);
		offsets[owner] = at;
		at += mmc_layout_block(&op->layout, owner).nbytes;
	}
}

void mmc_sim_op_lay_out(struct mmc_sim_op *op, uint32_t rank, uint8_t *memory)
{
	const struct mmc_block own = mmc_layout_block(&op->layout, rank);
	const uint8_t *bytes = op->truth + own.offset_bytes;

	op->parts[rank] = memory;
	memset(memory, GUARD, op->part_bytes);
	memset(result(op, rank), UNTOUCHED, op->result_bytes);
	memcpy(send_block(op, rank), bytes, own.nbytes);
	if (op->in_place[rank])
		memcpy(result(op, rank) + place(op, rank, rank), bytes,
		       own.nbytes);
}

static int lay_out(struct mmc_sim_op *op)
{
	const struct mmc_sim_shape *shape = &op->shape;
	int rv;

	switch (shape->kind) {
	case MMC_BCAST:
		return mmc_layout_init_sole(&op->layout, shape->nranks,
					    shape->root, shape->block_bytes,
					    shape->chunk_bytes);
	case MMC_ALLGATHERV:
		rv = mmc_layout_init_each(&op->layout, shape->nranks,
					  shape->blocks_bytes,
					  shape->chunk_bytes);
		if (rv < 0)
			return rv;
		op->table = malloc(mmc_layout_bytes(&op->layout) + 1);
		if (!op->table)
			return -MMC_ENOMEM;
		mmc_layout_tabulate(&op->layout, op->table,
				    shape->blocks_bytes);
		return 0;
	default:
		return mmc_layout_init(&op->layout, shape->nranks,
				       shape->block_bytes, shape->chunk_bytes);
	}
}

static int make_memory(struct mmc_sim_op *op)
{
	uint64_t nranks = op->layout.nranks;

	op->truth_bytes = op->layout.total_bytes;
	op->send_bytes = op->layout.largest_bytes;
	op->result_bytes = op->truth_bytes;
	if (op->shape.gaps) {
		op->result_bytes += nranks * GAP_BYTES_MAX;
		op->offsets = calloc(nranks * nranks, sizeof(*op->offsets));
		if (!op->offsets)
			return -MMC_ENOMEM;
	}
	op->part_bytes = 3 * GUARD_BYTES + op->send_bytes + op->result_bytes;
	op->truth = malloc(op->truth_bytes + 1);
	op->image = malloc(op->result_bytes + 1);
	op->parts = calloc(nranks, sizeof(*op->parts));
	op->in_place = calloc(nranks, sizeof(*op->in_place));
	if (!op->truth || !op->image || !op->parts || !op->in_place)
		return -MMC_ENOMEM;
	return 0;
}

int mmc_sim_op_init(struct mmc_sim_op *op, const struct mmc_sim_shape *shape,
		    uint64_t seed)
{
	struct mmc_prng prng = { .state = ~seed };
	struct mmc_sim_op made = { .shape = *shape };
	int rv = lay_out(&made);

	if (rv == 0)
		rv = make_memory(&made);
	if (rv < 0) {
		mmc_sim_op_free(&made);
		return rv;
	}
	fill_truth(&made, seed);
	for (uint32_t rank = 0; rank < shape->nranks; rank++) {
		made.in_place[rank] = shape->in_place &&
				      mmc_prng_below(&prng, 2);
		if (made.offsets)
			draw_offsets(&made, &prng, rank);
	}
	*op = made;
	return 0;
}

void mmc_sim_op_free(struct mmc_sim_op *op)
{
	free(op->shape.blocks_bytes);
	free(op->table);
	free(op->truth);
	free(op->offsets);
	free(op->image);
	free(op->parts);
	free(op->in_place);
	*op = (struct mmc_sim_op){ 0 };
}

struct mmc_operation mmc_sim_op_arguments(const struct mmc_sim_op *op,
					  uint32_t rank)
{
	const struct mmc_sim_shape *shape = &op->shape;
	const uint64_t *offsets =
		op->offsets ? op->offsets + rank * shape->nranks : NULL;

	return (struct mmc_operation){
		.kind = (uint32_t)shape->kind,
		.root = shape->root,
		.block_bytes = shape->block_bytes,
		.blocks_bytes = shape->blocks_bytes,
		.offsets_bytes = offsets,
		.send = op->in_place[rank] ? NULL : send_block(op, rank),
		.recv = result(op, rank),
	};
}

/* ---- judging ------------------------------------------------------------- */

/* Returns whether all bytes are `value`: the first one is, and each equals the next. */
static bool is_filled(const uint8_t *bytes, uint64_t nbytes, uint8_t value)
{
	return nbytes == 0 ||
	       (bytes[0] == value && memcmp(bytes, bytes + 1, nbytes - 1) == 0);
}

static bool guards_hold(const struct mmc_sim_op *op, uint32_t rank)
{
	return is_filled(part(op, rank), GUARD_BYTES, GUARD) &&
	       is_filled(result(op, rank) - GUARD_BYTES, GUARD_BYTES, GUARD) &&
	       is_filled(result(op, rank) + op->result_bytes, GUARD_BYTES,
			 GUARD);
}

static bool send_is_kept(const struct mmc_sim_op *op, uint32_t rank)
{
	const struct mmc_block own = mmc_layout_block(&op->layout, rank);

	return memcmp(send_block(op, rank), op->truth + own.offset_bytes,
		      own.nbytes) == 0;
}

/* Returns what the result of `rank` must be, with gaps. */
static const uint8_t *image_of(const struct mmc_sim_op *op, uint32_t rank)
{
	if (!op->offsets)
		return op->truth;
	memset(op->image, UNTOUCHED, op->result_bytes);
	for (uint32_t owner = 0; owner < op->layout.nranks; owner++) {
		const struct mmc_block block =
			mmc_layout_block(&op->layout, owner);

		memcpy(op->image + place(op, rank, owner),
		       op->truth + block.offset_bytes, block.nbytes);
	}
	return op->image;
}

const char *mmc_sim_op_flaw(const struct mmc_sim_op *op, uint32_t rank)
{
	if (!guards_hold(op, rank))
		return "a byte outside its buffers was written";
	if (!send_is_kept(op, rank))
		return "its send buffer was modified";
	if (memcmp(result(op, rank), image_of(op, rank), op->result_bytes) != 0)
		return "its result is wrong";
	return NULL;
}

/* Returns whether each byte of a chunk is right, or was never written. */
static bool chunk_is_right_or_untouched(const struct mmc_sim_op *op,
					uint32_t rank, uint32_t chunk)
{
	uint32_t owner = mmc_layout_owner(&op->layout, chunk);
	const struct mmc_block block = mmc_layout_block(&op->layout, owner);
	uint64_t offset = mmc_layout_offset(&op->layout, chunk);
	uint32_t nbytes = mmc_layout_payload(&op->layout, chunk);
	const uint8_t *bytes = result(op, rank) + place(op, rank, owner) +
			       (offset - block.offset_bytes);

	if (is_filled(bytes, nbytes, UNTOUCHED))
		return true;
	for (uint32_t i = 0; i < nbytes; i++)
		if (bytes[i] != op->truth[offset + i] && bytes[i] != UNTOUCHED)
			return false;
	return true;
}

const char *mmc_sim_op_failed_flaw(const struct mmc_sim_op *op, uint32_t rank,
				   bool zero_copy)
{
	if (!guards_hold(op, rank))
		return "a byte outside its buffers was written";
	if (!send_is_kept(op, rank))
		return "its send buffer was modified";
	for (uint32_t chunk = 0; chunk < op->layout.nchunks; chunk++)
		if (!zero_copy && !chunk_is_right_or_untouched(op, rank, chunk))
			return "a chunk has the wrong bytes";
	return NULL;
}

void mmc_sim_op_release(struct mmc_sim_op *op, uint32_t rank)
{
	memset(send_block(op, rank), RELEASED, op->send_bytes);
	memset(result(op, rank), RELEASED, op->result_bytes);
}

bool mmc_sim_op_is_untouched(const struct mmc_sim_op *op, uint32_t rank)
{
	return guards_hold(op, rank) &&
	       is_filled(send_block(op, rank), op->send_bytes, RELEASED) &&
	       is_filled(result(op, rank), op->result_bytes, RELEASED);
}
