/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/op.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 64, GUARD = 0xa7, UNTOUCHED = 0x5c, POISON = 0xd1 };

static uint64_t block_bytes(const struct mmc_sim_op *op)
{
	return op->layout.block_bytes;
}

/* A rank's part: guard, block to send, guard, result, guard. */
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
	return send_block(op, rank) + block_bytes(op) + GUARD_BYTES;
}

static void fill_truth(struct mmc_sim_op *op, uint64_t seed)
{
	struct mmc_prng prng = { .state = seed };

	for (uint64_t at = 0; at < op->truth_bytes; at += sizeof(uint64_t)) {
		uint64_t word = mmc_prng_next(&prng);
		uint64_t left = op->truth_bytes - at;

		memcpy(op->truth + at, &word, left < 8 ? left : 8);
	}
}

void mmc_sim_op_lay(struct mmc_sim_op *op, uint32_t rank, uint8_t *memory)
{
	const uint8_t *own = op->truth + rank * block_bytes(op);

	op->parts[rank] = memory;
	memset(memory, GUARD, op->part_bytes);
	memset(result(op, rank), UNTOUCHED, op->truth_bytes);
	memcpy(send_block(op, rank), own, block_bytes(op));
	if (op->in_place[rank])
		memcpy(result(op, rank) + rank * block_bytes(op), own,
		       block_bytes(op));
}

int mmc_sim_op_init(struct mmc_sim_op *op, uint32_t nranks, uint64_t bytes,
		    uint32_t chunk_bytes, bool in_place, uint64_t seed)
{
	struct mmc_prng prng = { .state = ~seed };
	struct mmc_sim_op made = { 0 };

	if (mmc_layout_init(&made.layout, nranks, bytes, chunk_bytes) < 0)
		return -MMC_EINVAL;
	made.truth_bytes = nranks * bytes;
	made.part_bytes = 3 * GUARD_BYTES + bytes + made.truth_bytes;
	made.truth = malloc(made.truth_bytes + 1);
	made.parts = calloc(nranks, sizeof(*made.parts));
	made.in_place = calloc(nranks, sizeof(*made.in_place));
	if (!made.truth || !made.parts || !made.in_place) {
		mmc_sim_op_free(&made);
		return -MMC_ENOMEM;
	}
	fill_truth(&made, seed);
	for (uint32_t rank = 0; rank < nranks; rank++)
		made.in_place[rank] = in_place && mmc_prng_below(&prng, 2);
	*op = made;
	return 0;
}

void mmc_sim_op_free(struct mmc_sim_op *op)
{
	free(op->truth);
	free(op->parts);
	free(op->in_place);
	*op = (struct mmc_sim_op){ 0 };
}

const void *mmc_sim_op_send(const struct mmc_sim_op *op, uint32_t rank)
{
	return op->in_place[rank] ? NULL : send_block(op, rank);
}

void *mmc_sim_op_recv(const struct mmc_sim_op *op, uint32_t rank)
{
	return result(op, rank);
}

/* Whether all of `nbytes` are `value`: each byte equals the one before. */
static bool is_filled(const uint8_t *bytes, uint64_t nbytes, uint8_t value)
{
	return nbytes == 0 ||
	       (bytes[0] == value && memcmp(bytes, bytes + 1, nbytes - 1) == 0);
}

static bool guards_hold(const struct mmc_sim_op *op, uint32_t rank)
{
	return is_filled(part(op, rank), GUARD_BYTES, GUARD) &&
	       is_filled(result(op, rank) - GUARD_BYTES, GUARD_BYTES, GUARD) &&
	       is_filled(result(op, rank) + op->truth_bytes, GUARD_BYTES,
			 GUARD);
}

static bool send_is_kept(const struct mmc_sim_op *op, uint32_t rank)
{
	return memcmp(send_block(op, rank), op->truth + rank * block_bytes(op),
		      block_bytes(op)) == 0;
}

const char *mmc_sim_op_flaw(const struct mmc_sim_op *op, uint32_t rank)
{
	if (!guards_hold(op, rank))
		return "a byte outside its buffers was written";
	if (!send_is_kept(op, rank))
		return "its send buffer was written";
	if (memcmp(result(op, rank), op->truth, op->truth_bytes) != 0)
		return "its result is wrong";
	return NULL;
}

static bool chunk_is_right_or_untouched(const struct mmc_sim_op *op,
					uint32_t rank, uint32_t chunk)
{
	uint64_t offset = mmc_layout_offset(&op->layout, chunk);
	uint32_t nbytes = mmc_layout_payload(&op->layout,
					     chunk % op->layout.block_chunks);
	const uint8_t *bytes = result(op, rank) + offset;

	return memcmp(bytes, op->truth + offset, nbytes) == 0 ||
	       is_filled(bytes, nbytes, UNTOUCHED);
}

const char *mmc_sim_op_failed_flaw(const struct mmc_sim_op *op, uint32_t rank,
				   bool zero_copy)
{
	if (!guards_hold(op, rank))
		return "a byte outside its buffers was written";
	if (!send_is_kept(op, rank))
		return "its send buffer was written";
	for (uint32_t chunk = 0; chunk < op->layout.nchunks; chunk++)
		if (!zero_copy && !chunk_is_right_or_untouched(op, rank, chunk))
			return "a chunk is wrong";
	return NULL;
}

void mmc_sim_op_poison(struct mmc_sim_op *op, uint32_t rank)
{
	memset(send_block(op, rank), POISON, block_bytes(op));
	memset(result(op, rank), POISON, op->truth_bytes);
}

bool mmc_sim_op_poisoned(const struct mmc_sim_op *op, uint32_t rank)
{
	return guards_hold(op, rank) &&
	       is_filled(send_block(op, rank), block_bytes(op), POISON) &&
	       is_filled(result(op, rank), op->truth_bytes, POISON);
}
