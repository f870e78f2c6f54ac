/* SPDX-License-Identifier: BSD-3-Clause */
/* A member fills a piece where its slot is free, and with its own part alone. */
#include "node/fill.h"

#include "node_members.h"

enum { NBYTES = 10000 };

static struct members members;
static uint8_t recv[MEMBERS_MAX][MEMBERS_MAX * NBYTES];

/* Starts an in-place Allgather of NBYTES per rank, which takes several pieces. */
static struct mmc_node_request *start(uint32_t rank)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.recv = recv[rank],
	};
	struct mmc_node_request *request;

	fill_block(recv[rank] + rank * NBYTES, NBYTES, 0, rank);
	CHECK(mmc_node_start(members.streams[rank], &operation, 0, &request) >=
	      0);
	return request;
}

/* Waits for all requests by turns, and frees them. */
static void finish(struct mmc_node_request *const *requests, uint32_t n)
{
	for (int round = 0; round < 1000; round++)
		for (uint32_t i = 0; i < n; i++)
			mmc_node_request_wait(requests[i], 0);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_EQ(mmc_node_request_wait(requests[i], 0), 0);
		mmc_node_request_free(requests[i]);
	}
}

static void a_member_fills_all_free_slots_and_no_more(void)
{
	struct mmc_node_stream_options options = members_options(2);
	struct mmc_node_request *requests[2];
	struct mmc_node_stream *stream;

	options.nslots = 4;
	members_open(&members, 2, options);
	stream = members.streams[0];
	requests[0] = start(0);
	CHECK(requests[0]->pieces.npieces > 4);
	CHECK_EQ(stream->nfilled, 4);
	CHECK_EQ(mmc_cursor_get(&stream->lines[0].filled), 4);
	CHECK(!mmc_node_fill(requests[0]));
	CHECK_EQ(stream->nfilled, 4);
	/* The other reads what there is, but nothing is free until both have read. */
	requests[1] = start(1);
	CHECK_EQ(members.streams[1]->nread, 4);
	CHECK_EQ(members.streams[1]->nfilled, 4);
	CHECK_EQ(stream->nread, 0);
	mmc_node_request_wait(requests[0], 0);
	CHECK_EQ(stream->nread, 4);
	CHECK(stream->nfilled > 4);
	finish(requests, 2);
	members_close(&members);
}

/* Each piece holds the part of each rank where all ranks look for it. */
static void a_part_is_put_into_its_slot(void)
{
	struct mmc_node_stream_options options = members_options(3);
	struct mmc_node_request *requests[3];
	struct mmc_node_stream *stream;

	options.nslots = 2;
	members_open(&members, 3, options);
	requests[1] = start(1);
	stream = members.streams[1];
	for (uint32_t piece = 0; piece < 2; piece++) {
		struct mmc_part part =
			mmc_pieces_part(&requests[1]->pieces, piece, 1);

		CHECK(part.nbytes > 0);
		CHECK_BYTES(mmc_node_slot(stream, piece) + part.nbytes,
			    recv[1] + NBYTES + part.offset_bytes, part.nbytes);
		CHECK_EQ(mmc_node_slot(stream, piece)[0], 0);
		CHECK_EQ(mmc_node_slot(stream, piece)[2 * part.nbytes], 0);
	}
	requests[0] = start(0);
	requests[2] = start(2);
	finish(requests, 3);
	members_close(&members);
}

/* What a member sends reaches its own result, too, piece by piece. */
static void a_block_reaches_its_own_result(void)
{
	static uint8_t send[NBYTES];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.send = send,
		.recv = recv[0],
	};
	struct mmc_node_request *requests[2];

	members_open(&members, 2, members_options(2));
	fill_block(send, NBYTES, 5, 0);
	memset(recv[0], 0, sizeof(recv[0]));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0,
				&requests[0]),
		 MMC_EAGAIN);
	CHECK_BYTES(recv[0], send, 2 * requests[0]->pieces.part_bytes);
	CHECK_EQ(recv[0][2 * requests[0]->pieces.part_bytes], 0);
	requests[1] = start(1);
	finish(requests, 2);
	CHECK_BYTES(recv[0], send, NBYTES);
	CHECK_BYTES(recv[1], send, NBYTES);
	members_close(&members);
}

/* In a Bcast, only the root copies anything into the segment. */
static void only_a_root_fills_with_bytes(void)
{
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.root = 2,
		.block_bytes = 100,
		.recv = recv[0],
	};
	struct mmc_node_request *request;
	struct mmc_node_stream *stream;

	members_open(&members, 3, members_options(3));
	stream = members.streams[0];
	CHECK_EQ(mmc_node_start(stream, &operation, 0, &request), MMC_EAGAIN);
	CHECK_EQ(mmc_cursor_get(&stream->lines[0].filled), 1);
	CHECK_EQ(stream->counts.tx_bytes, 0);
	CHECK_EQ(mmc_node_start(members.streams[2], &operation, 0, &request),
		 0);
	CHECK_EQ(members.streams[2]->counts.tx_bytes, 100);
	members_close(&members);
}

/* The slowest reader is found, also where the numbers wrap round. */
static void the_slowest_reader_is_found(void)
{
	static const uint32_t bases[] = { 5, UINT32_MAX - 1, 0 };
	struct mmc_node_stream *stream;
	uint32_t slowest;

	members_open(&members, 4, members_options(4));
	stream = members.streams[2];
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t base = bases[i];

		stream->nread = base + 2;
		for (uint32_t m = 0; m < 4; m++)
			mmc_cursor_set(&stream->lines[m].read, base + 2);
		CHECK_EQ(mmc_node_least_read(stream, &slowest), base + 2);
		CHECK_EQ(slowest, 2);
		mmc_cursor_set(&stream->lines[3].read, base);
		mmc_cursor_set(&stream->lines[1].read, base + 1);
		CHECK_EQ(mmc_node_least_read(stream, &slowest), base);
		CHECK_EQ(slowest, 3);
		mmc_cursor_set(&stream->lines[3].read, base + 3);
		CHECK_EQ(mmc_node_least_read(stream, &slowest), base + 1);
		CHECK_EQ(slowest, 1);
	}
	members_close(&members);
}

CHECK_MAIN(CHECK_TEST(a_member_fills_all_free_slots_and_no_more),
	   CHECK_TEST(a_part_is_put_into_its_slot),
	   CHECK_TEST(a_block_reaches_its_own_result),
	   CHECK_TEST(only_a_root_fills_with_bytes),
	   CHECK_TEST(the_slowest_reader_is_found))
