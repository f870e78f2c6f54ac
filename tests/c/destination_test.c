/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that places by itself learns where the blocks of other ranks belong. */
#include "engine/destination.h"

#include "check.h"
#include "engine/state.h"

#define NRANKS 3
#define CHUNK_BYTES 8
#define BLOCK_BYTES 35 /* with a tail */
#define BLOCK_CHUNKS 5
#define THIS_RANK 1

static struct mmc_op op;
static struct mmc_request request;
static uint8_t base[NRANKS * BLOCK_BYTES];

static struct mmc_destination destination(uint32_t source)
{
	return mmc_request_destination(&request, source);
}

static void open_request(void)
{
	op = (struct mmc_op){ .config.rank = THIS_RANK };
	request = (struct mmc_request){ .op = &op, .base = base };
}

static void each_block_but_the_own_belongs_somewhere(void)
{
	open_request();
	CHECK_EQ(mmc_layout_init(&op.layout, NRANKS, BLOCK_BYTES, CHUNK_BYTES),
		 0);
	for (uint32_t r = 0; r < NRANKS; r++) {
		struct mmc_destination to = destination(r);

		CHECK_EQ(to.first, r * BLOCK_CHUNKS);
		CHECK_EQ(to.nbytes, BLOCK_BYTES);
		if (r == THIS_RANK)
			CHECK(to.memory == NULL);
		else
			CHECK(to.memory == base + r * BLOCK_BYTES);
	}
}

/* Of a Bcast only the root's block has any bytes. */
static void a_bcast_has_one_block(void)
{
	open_request();
	CHECK_EQ(mmc_layout_init_sole(&op.layout, NRANKS, 2, BLOCK_BYTES,
				      CHUNK_BYTES),
		 0);
	CHECK_EQ(destination(0).nbytes, 0);
	CHECK_EQ(destination(2).nbytes, BLOCK_BYTES);
	CHECK_EQ(destination(2).first, 0);
	CHECK(destination(2).memory == base);
}

/* The blocks of an Allgatherv may be uneven, and lie apart, in any order. */
static void blocks_may_lie_apart(void)
{
	const uint64_t blocks_bytes[NRANKS] = { 40, 8, 16 };
	const uint64_t offsets_bytes[NRANKS] = { 60, 50, 5 };
	_Alignas(64) uint8_t memory[1024];

	open_request();
	CHECK_EQ(mmc_layout_init_each(&op.layout, NRANKS, blocks_bytes,
				      CHUNK_BYTES),
		 0);
	CHECK(mmc_layout_bytes(&op.layout) <= sizeof(memory));
	mmc_layout_tabulate(&op.layout, memory, blocks_bytes);
	request.operation.offsets_bytes = offsets_bytes;
	CHECK(destination(0).memory == base + 60);
	CHECK_EQ(destination(0).nbytes, 40);
	CHECK(destination(2).memory == base + 5);
	CHECK_EQ(destination(2).nbytes, 16);
	CHECK_EQ(destination(2).first, 6);
}

CHECK_MAIN(CHECK_TEST(each_block_but_the_own_belongs_somewhere),
	   CHECK_TEST(a_bcast_has_one_block), CHECK_TEST(blocks_may_lie_apart))
