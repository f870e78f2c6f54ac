/* SPDX-License-Identifier: BSD-3-Clause */
/* A payload belongs in a registered buffer only if all of its datagram fits. */
#include "firmware/tag.h"

#include "check.h"

#define CHUNK_BYTES 512
#define TAIL_BYTES 100
#define BLOCK_CHUNKS 4
#define FIRST 10 /* chunk of the block */
#define PLACE 4096

static const struct mmc_nic_buffer buffer = {
	.channel = UINT64_C(77) << 16,
	.epoch = 5,
	.chunk_bytes = CHUNK_BYTES,
};

static const struct mmc_nic_block block = {
	.offset = PLACE,
	.nbytes = (BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES,
	.first = FIRST,
};

/* Returns the header of the block's chunk number `number`. */
static struct mmc_header header_of(uint32_t number)
{
	return (struct mmc_header){
		.channel = buffer.channel | 0x1234, /* a checksum */
		.epoch = buffer.epoch,
		.index = FIRST + number,
	};
}

static uint64_t place(struct mmc_header header, uint64_t nbytes)
{
	return mmc_tag_place(&buffer, &block, &header, nbytes);
}

static void each_chunk_has_its_place(void)
{
	for (uint32_t i = 0; i < BLOCK_CHUNKS - 1; i++)
		CHECK_EQ(place(header_of(i), CHUNK_BYTES),
			 PLACE + i * CHUNK_BYTES);
	CHECK_EQ(place(header_of(BLOCK_CHUNKS - 1), TAIL_BYTES),
		 PLACE + (BLOCK_CHUNKS - 1) * CHUNK_BYTES);
}

/* The last chunk of a block of whole chunks is a full one. */
static void a_block_may_have_no_tail(void)
{
	const struct mmc_nic_block whole = {
		.offset = PLACE,
		.nbytes = BLOCK_CHUNKS * CHUNK_BYTES,
		.first = FIRST,
	};
	struct mmc_header last = header_of(BLOCK_CHUNKS - 1);
	struct mmc_header behind = header_of(BLOCK_CHUNKS);

	CHECK_EQ(mmc_tag_place(&buffer, &whole, &last, CHUNK_BYTES),
		 PLACE + (BLOCK_CHUNKS - 1) * CHUNK_BYTES);
	CHECK_EQ(mmc_tag_place(&buffer, &whole, &behind, CHUNK_BYTES), 0);
	CHECK_EQ(mmc_tag_place(&buffer, &whole, &behind, 0), 0);
}

static void other_lengths_have_no_place(void)
{
	CHECK_EQ(place(header_of(0), CHUNK_BYTES - 1), 0);
	CHECK_EQ(place(header_of(0), CHUNK_BYTES + 1), 0);
	CHECK_EQ(place(header_of(0), 0), 0);
	CHECK_EQ(place(header_of(0), UINT64_MAX), 0);
	CHECK_EQ(place(header_of(BLOCK_CHUNKS - 1), CHUNK_BYTES), 0);
}

static void chunks_of_others_have_no_place(void)
{
	CHECK_EQ(place(header_of(BLOCK_CHUNKS), CHUNK_BYTES), 0);
	CHECK_EQ(place(header_of(BLOCK_CHUNKS), TAIL_BYTES), 0);
	CHECK_EQ(place(header_of(UINT32_MAX), CHUNK_BYTES), 0);
	CHECK_EQ(place(header_of(UINT32_MAX - FIRST + 1), CHUNK_BYTES), 0);
	CHECK_EQ(place(header_of(MMC_INDEX_MASK - FIRST), CHUNK_BYTES), 0);
}

static void other_headers_have_no_place(void)
{
	struct mmc_header header = header_of(1);

	header.epoch++;
	CHECK_EQ(place(header, CHUNK_BYTES), 0);
	header = header_of(1);
	header.channel += UINT64_C(1) << 16;
	CHECK_EQ(place(header, CHUNK_BYTES), 0);
	header = header_of(1);
	header.index |= MMC_INDEX_REPAIR;
	CHECK_EQ(place(header, CHUNK_BYTES), 0);
	header.index = (FIRST + 1) | MMC_INDEX_CONTROL;
	CHECK_EQ(place(header, CHUNK_BYTES), 0);
}

/* Such is the block of the rank itself, and that of one who sends nothing. */
static void an_empty_block_has_no_place(void)
{
	const struct mmc_nic_block empty = { .offset = PLACE, .first = FIRST };
	struct mmc_header header = header_of(0);

	CHECK_EQ(mmc_tag_place(&buffer, &empty, &header, CHUNK_BYTES), 0);
	CHECK_EQ(mmc_tag_place(&buffer, &empty, &header, 0), 0);
}

CHECK_MAIN(CHECK_TEST(each_chunk_has_its_place),
	   CHECK_TEST(a_block_may_have_no_tail),
	   CHECK_TEST(other_lengths_have_no_place),
	   CHECK_TEST(chunks_of_others_have_no_place),
	   CHECK_TEST(other_headers_have_no_place),
	   CHECK_TEST(an_empty_block_has_no_place))
