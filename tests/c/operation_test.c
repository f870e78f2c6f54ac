/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of operations: their blocks, their copies, and how they differ. */
#include "engine/operation.h"

#include "check.h"

#define NRANKS 3

static const uint64_t sizes[NRANKS] = { 5, 0, 7 };

static const struct mmc_operation allgather = {
	.kind = MMC_ALLGATHER,
	.block_bytes = 10,
};
static const struct mmc_operation bcast = {
	.kind = MMC_BCAST,
	.root = 1,
	.block_bytes = 10,
};
static const struct mmc_operation allgatherv = {
	.kind = MMC_ALLGATHERV,
	.blocks_bytes = sizes,
};

static void nonsense_is_refused(void)
{
	const struct mmc_operation no_sizes = { .kind = MMC_ALLGATHERV };
	const struct mmc_operation no_root = {
		.kind = MMC_BCAST,
		.root = NRANKS,
	};
	const struct mmc_operation unknown = { .kind = 4 };

	CHECK_EQ(mmc_operation_check(&allgather, NRANKS), 0);
	CHECK_EQ(mmc_operation_check(&allgatherv, NRANKS), 0);
	CHECK_EQ(mmc_operation_check(&bcast, NRANKS), 0);
	CHECK_EQ(mmc_operation_check(&no_sizes, NRANKS), -MMC_EINVAL);
	CHECK_EQ(mmc_operation_check(&no_root, NRANKS), -MMC_EINVAL);
	CHECK_EQ(mmc_operation_check(&unknown, NRANKS), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "4") != NULL);
}

/* Each kind of operation has its own block sizes, offsets and total. */
static void blocks(void)
{
	static const uint64_t offsets[NRANKS] = { 100, 7, 0 };
	struct mmc_operation spread = allgatherv;

	spread.offsets_bytes = offsets;
	CHECK_EQ(mmc_operation_total(&allgather, NRANKS), 30);
	CHECK_EQ(mmc_operation_total(&bcast, NRANKS), 10);
	CHECK_EQ(mmc_operation_total(&allgatherv, NRANKS), 12);
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(mmc_operation_block(&allgather, r), 10);
		CHECK_EQ(mmc_operation_block(&bcast, r), r == 1 ? 10 : 0);
		CHECK_EQ(mmc_operation_block(&allgatherv, r), sizes[r]);
		CHECK_EQ(mmc_operation_offset(&allgather, r), 10 * r);
		CHECK_EQ(mmc_operation_offset(&bcast, r), 0);
		CHECK_EQ(mmc_operation_offset(&spread, r), offsets[r]);
	}
	CHECK_EQ(mmc_operation_offset(&allgatherv, 2), 5);
}

/* A copy has its own tables; if blocks adjoin, it needs no offsets. */
static void copies(void)
{
	uint64_t user_sizes[NRANKS] = { 5, 0, 7 };
	uint64_t offsets[NRANKS] = { 3, 999, 8 };
	uint64_t tables[2 * NRANKS];
	uint8_t recv[32];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = user_sizes,
		.offsets_bytes = offsets,
		.recv = recv,
	};
	struct mmc_operation copy;

	CHECK_EQ(mmc_operation_bytes(&operation, NRANKS), sizeof(tables));
	CHECK_EQ(mmc_operation_bytes(&allgather, NRANKS), 0);
	mmc_operation_copy(&copy, &operation, NRANKS, tables);
	CHECK(copy.offsets_bytes == NULL);
	CHECK(copy.recv == recv + 3);

	offsets[2] = 9;
	mmc_operation_copy(&copy, &operation, NRANKS, tables);
	memset(user_sizes, 0xff, sizeof(user_sizes));
	memset(offsets, 0xff, sizeof(offsets));
	CHECK(copy.recv == recv);
	for (uint32_t r = 0; r < NRANKS; r++)
		CHECK_EQ(copy.blocks_bytes[r], sizes[r]);
	CHECK_EQ(copy.offsets_bytes[0], 3);
	CHECK_EQ(copy.offsets_bytes[2], 9);
}

static struct mmc_failure compare(const struct mmc_operation *a,
				  const struct mmc_operation *b)
{
	struct mmc_op_config configs[2] = { 0 };
	struct mmc_failure failure = { 0 };
	struct mmc_terms terms = { 0 };

	mmc_operation_configure(a, NRANKS, &configs[0]);
	mmc_operation_configure(b, NRANKS, &configs[1]);
	terms.signature_min =
		mmc_min_u64(configs[0].signature, configs[1].signature);
	terms.signature_max =
		mmc_max_u64(configs[0].signature, configs[1].signature);
	mmc_operation_describe_mismatch(&terms, &failure);
	return failure;
}

/* Equal operations have equal signatures; unequal ones show what differs. */
static void differences(void)
{
	static const uint64_t other_sizes[NRANKS] = { 5, 7, 0 };
	struct mmc_operation other = bcast;
	struct mmc_failure failure = compare(&bcast, &other);
	struct mmc_op_config configs[2] = { 0 };

	CHECK_EQ(failure.root_min, failure.root_max);
	CHECK_EQ(failure.block_bytes_min, failure.block_bytes_max);
	other.root = 2;
	failure = compare(&bcast, &other);
	CHECK_EQ(failure.kind_min, MMC_BCAST);
	CHECK_EQ(failure.kind_max, MMC_BCAST);
	CHECK_EQ(failure.root_min, 1);
	CHECK_EQ(failure.root_max, 2);
	other = allgather;
	other.block_bytes = 11;
	failure = compare(&allgather, &other);
	CHECK_EQ(failure.block_bytes_min, 10);
	CHECK_EQ(failure.block_bytes_max, 11);
	failure = compare(&allgather, &bcast);
	CHECK_EQ(failure.kind_min, MMC_ALLGATHER);
	CHECK_EQ(failure.kind_max, MMC_BCAST);

	other = allgatherv;
	other.blocks_bytes = other_sizes;
	mmc_operation_configure(&allgatherv, NRANKS, &configs[0]);
	mmc_operation_configure(&other, NRANKS, &configs[1]);
	CHECK(configs[0].signature != configs[1].signature);
	CHECK(!configs[0].sole && configs[0].blocks_bytes == sizes);
}

CHECK_MAIN(CHECK_TEST(nonsense_is_refused), CHECK_TEST(blocks),
	   CHECK_TEST(copies), CHECK_TEST(differences))
