/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/operation.h"

#include <string.h>

#include "support/error.h"

/*
 * A signature is a number that is equal on all ranks if their arguments agree. Bits 60
 * to 63 hold the kind. The other bits hold, for an Allgather, the bytes of a block; for
 * a Bcast, the root in bits 40 to 59 and the bytes of the block below them; for an
 * Allgatherv, a hash of the sizes of all blocks.
 */
#define KIND_SHIFT 60
#define ROOT_SHIFT 40
#define ROOT_MASK ((UINT64_C(1) << (KIND_SHIFT - ROOT_SHIFT)) - 1)
#define BYTES_MASK ((UINT64_C(1) << ROOT_SHIFT) - 1)
#define HASH_MASK ((UINT64_C(1) << KIND_SHIFT) - 1)

_Static_assert(MMC_ROUNDS_MAX <= KIND_SHIFT - ROOT_SHIFT, "any root fits");

int mmc_operation_check(const struct mmc_operation *operation, uint32_t nranks)
{
	switch (operation->kind) {
	case MMC_ALLGATHER:
		return 0;
	case MMC_ALLGATHERV:
		if (operation->blocks_bytes != NULL)
			return 0;
		mmc_error_set(
			"an Allgatherv needs the size of every rank's block");
		return -MMC_EINVAL;
	case MMC_BCAST:
		if (operation->root < nranks)
			return 0;
		mmc_error_set("root %u is out of range for %u ranks",
			      operation->root, nranks);
		return -MMC_EINVAL;
	default:
		mmc_error_set("operation kind %u is unknown", operation->kind);
		return -MMC_EINVAL;
	}
}

/*
 * Hashes words as FNV-1a hashes bytes. The multiplication carries only upwards, so the
 * shift lets high bits affect low ones.
 */
static uint64_t hash(const uint64_t *words, uint32_t nwords)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i < nwords; i++) {
		value = (value ^ words[i]) * UINT64_C(0x100000001b3);
		value ^= value >> 32;
	}
	return value;
}

static uint64_t signature(const struct mmc_operation *operation,
			  uint32_t nranks)
{
	uint64_t kind = (uint64_t)operation->kind << KIND_SHIFT;
	uint64_t bytes = operation->block_bytes & BYTES_MASK;

	if (operation->kind == MMC_ALLGATHERV)
		return kind |
		       (hash(operation->blocks_bytes, nranks) & HASH_MASK);
	if (operation->kind == MMC_BCAST)
		return kind | (uint64_t)operation->root << ROOT_SHIFT | bytes;
	return kind | bytes;
}

void mmc_operation_configure(const struct mmc_operation *operation,
			     uint32_t nranks, struct mmc_op_config *config)
{
	config->signature = signature(operation, nranks);
	config->block_bytes = operation->block_bytes;
	config->sole = operation->kind == MMC_BCAST;
	config->root = operation->root;
	config->partial = operation->partial != 0;
	config->blocks_bytes = operation->kind == MMC_ALLGATHERV
				       ? operation->blocks_bytes
				       : NULL;
}

size_t mmc_operation_bytes(const struct mmc_operation *operation,
			   uint32_t nranks)
{
	return operation->kind == MMC_ALLGATHERV ? 2 * nranks * sizeof(uint64_t)
						 : 0;
}

/*
 * Returns whether the blocks are adjacent in user memory, in rank order. If so, writes
 * to `*begin` at how many bytes from `recv` the first one begins.
 */
static bool blocks_are_adjacent(const struct mmc_operation *operation,
				uint32_t nranks, uint64_t *begin)
{
	uint64_t before_bytes = 0;
	bool any = false;

	*begin = 0;
	if (operation->offsets_bytes == NULL)
		return true;
	for (uint32_t r = 0; r < nranks; r++) {
		uint64_t at = operation->offsets_bytes[r] - before_bytes;

		if (operation->blocks_bytes[r] == 0)
			continue;
		if (any && at != *begin)
			return false;
		*begin = at;
		any = true;
		before_bytes += operation->blocks_bytes[r];
	}
	return true;
}

void mmc_operation_copy(struct mmc_operation *copy,
			const struct mmc_operation *operation, uint32_t nranks,
			void *memory)
{
	uint64_t *blocks_bytes = memory;
	uint64_t *offsets_bytes;
	uint64_t begin;

	*copy = *operation;
	copy->blocks_bytes = NULL;
	copy->offsets_bytes = NULL;
	if (operation->kind != MMC_ALLGATHERV)
		return;
	memcpy(blocks_bytes, operation->blocks_bytes,
	       nranks * sizeof(*blocks_bytes));
	copy->blocks_bytes = blocks_bytes;
	if (blocks_are_adjacent(operation, nranks, &begin)) {
		copy->recv = (uint8_t *)operation->recv + begin;
		return;
	}
	offsets_bytes = blocks_bytes + nranks;
	memcpy(offsets_bytes, operation->offsets_bytes,
	       nranks * sizeof(*offsets_bytes));
	copy->offsets_bytes = offsets_bytes;
}

uint64_t mmc_operation_block(const struct mmc_operation *operation,
			     uint32_t rank)
{
	if (operation->kind == MMC_ALLGATHERV)
		return operation->blocks_bytes[rank];
	if (operation->kind == MMC_BCAST && rank != operation->root)
		return 0;
	return operation->block_bytes;
}

uint64_t mmc_operation_total(const struct mmc_operation *operation,
			     uint32_t nranks)
{
	uint64_t total_bytes = 0;

	if (operation->kind == MMC_BCAST)
		return operation->block_bytes;
	if (operation->kind == MMC_ALLGATHER)
		return nranks * operation->block_bytes;
	for (uint32_t r = 0; r < nranks; r++)
		total_bytes += operation->blocks_bytes[r];
	return total_bytes;
}

uint64_t mmc_operation_offset(const struct mmc_operation *operation,
			      uint32_t rank)
{
	if (operation->offsets_bytes != NULL)
		return operation->offsets_bytes[rank];
	/* The blocks of lower ranks lie before this one, without gaps. */
	return operation->kind == MMC_BCAST
		       ? 0
		       : mmc_operation_total(operation, rank);
}

void mmc_operation_describe_mismatch(const struct mmc_terms *terms,
				     struct mmc_failure *failure)
{
	uint64_t least = terms->signature_min;
	uint64_t most = terms->signature_max;

	failure->kind_min = (uint32_t)(least >> KIND_SHIFT);
	failure->kind_max = (uint32_t)(most >> KIND_SHIFT);
	if (failure->kind_min == MMC_BCAST) {
		failure->root_min = (uint32_t)(least >> ROOT_SHIFT & ROOT_MASK);
		failure->root_max = (uint32_t)(most >> ROOT_SHIFT & ROOT_MASK);
	}
	if (failure->kind_min != MMC_ALLGATHERV) {
		failure->block_bytes_min = least & BYTES_MASK;
		failure->block_bytes_max = most & BYTES_MASK;
	}
}
