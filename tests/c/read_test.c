/* SPDX-License-Identifier: BSD-3-Clause */
/* A member reads a piece once all that it wants of it is there, and nothing else. */
#include "node/read.h"

#include "node_members.h"

enum { NBYTES = 100 };

static struct members members;
static uint8_t recv[MEMBERS_MAX][MEMBERS_MAX * NBYTES];

static struct mmc_node_request *start(uint32_t rank, uint32_t kind,
				      uint64_t nbytes)
{
	const struct mmc_operation operation = {
		.kind = kind,
		.block_bytes = nbytes,
		.recv = recv[rank],
	};
	uint64_t offset = kind == MMC_BCAST ? 0 : rank * nbytes;
	struct mmc_node_request *request;

	memset(recv[rank], 0xee, sizeof(recv[rank]));
	if (kind != MMC_BCAST || rank == 0)
		fill_block(recv[rank] + offset, nbytes, 0, rank);
	CHECK(mmc_node_start(members.streams[rank], &operation, 0, &request) !=
	      -MMC_EINVAL);
	return request;
}

/* Returns whether a rank's block stands in the result of `rank`. */
static bool has(uint32_t rank, uint32_t of, uint64_t nbytes)
{
	uint8_t block[NBYTES];

	fill_block(block, nbytes, 0, of);
	return memcmp(recv[rank] + of * nbytes, block, nbytes) == 0;
}

/* Parts are copied as they come, and each of them once. */
static void parts_are_taken_as_they_come(void)
{
	struct mmc_node_request *requests[3];

	members_open(&members, 3, members_options(3));
	requests[0] = start(0, MMC_ALLGATHER, NBYTES);
	CHECK(!mmc_node_read(requests[0]));
	CHECK_EQ(requests[0]->ntaken, 1);
	requests[2] = start(2, MMC_ALLGATHER, NBYTES);
	CHECK(!mmc_node_read(requests[0]));
	CHECK_EQ(requests[0]->ntaken, 2);
	CHECK(has(0, 2, NBYTES));
	CHECK_EQ(recv[0][NBYTES], 0xee);
	CHECK_EQ(members.streams[0]->counts.rx_bytes, NBYTES);
	CHECK(!mmc_node_read(requests[0]));
	CHECK_EQ(members.streams[0]->counts.rx_bytes, NBYTES);
	/* The last to come finds everything there. */
	requests[1] = start(1, MMC_ALLGATHER, NBYTES);
	CHECK(requests[1] == NULL);
	CHECK(has(1, 0, NBYTES) && has(1, 1, NBYTES) && has(1, 2, NBYTES));
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), 0);
	CHECK_EQ(mmc_node_request_wait(requests[2], 0), 0);
	CHECK(has(0, 0, NBYTES) && has(0, 1, NBYTES));
	CHECK(has(2, 0, NBYTES) && has(2, 1, NBYTES));
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(members.streams[i]->counts.rx_bytes, 2 * NBYTES);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[2]);
	members_close(&members);
}

/* Of a Bcast a member needs the root alone, and the root needs nobody. */
static void a_bcast_awaits_its_root_alone(void)
{
	struct mmc_node_request *request;

	members_open(&members, 3, members_options(3));
	request = start(1, MMC_BCAST, NBYTES);
	CHECK(request != NULL && !mmc_node_read(request));
	CHECK(start(0, MMC_BCAST, NBYTES) == NULL);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	CHECK(has(1, 0, NBYTES));
	CHECK_EQ(recv[1][NBYTES], 0xee);
	CHECK(start(2, MMC_BCAST, NBYTES) == NULL);
	CHECK(has(2, 0, NBYTES));
	mmc_node_request_free(request);
	members_close(&members);
}

/* Blocks without bytes are awaited, too: an Allgather is complete on all or on none. */
static void blocks_without_bytes_are_awaited(void)
{
	struct mmc_node_request *request;

	members_open(&members, 2, members_options(2));
	request = start(0, MMC_ALLGATHER, 0);
	CHECK(request != NULL);
	CHECK_EQ(mmc_node_request_wait(request, 0), MMC_EAGAIN);
	CHECK(start(1, MMC_ALLGATHER, 0) == NULL);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	CHECK_EQ(recv[0][0], 0xee);
	mmc_node_request_free(request);
	members_close(&members);
}

/*
 * Once an operation has failed its result is the program's again: not even parts that
 * have come are copied there any more.
 */
static void nothing_is_copied_after_a_failure(void)
{
	struct mmc_node_request *requests[3];

	members_open(&members, 3, members_options(3));
	requests[0] = start(0, MMC_ALLGATHER, NBYTES);
	requests[2] = start(2, MMC_ALLGATHER, NBYTES);
	/* Rank 0 looks at rank 1 first, which has started something else. */
	members.streams[1]->lines[1].digests[0] = requests[0]->digest + 1;
	mmc_cursor_set(&members.streams[1]->lines[1].filled, 1);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EMISMATCH);
	CHECK(!has(0, 2, NBYTES));
	CHECK_EQ(recv[0][2 * NBYTES], 0xee);
	CHECK_EQ(mmc_node_request_wait(requests[2], 0), -MMC_EMISMATCH);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[2]);
	members_close(&members);
}

/* More members than a word has bits are told apart. */
static void many_members_are_told_apart(void)
{
	enum { N = 70 };
	static uint8_t results[N][N];
	static const uint32_t nodes[N];
	struct mmc_node_stream_options options = members_options(N);
	struct mmc_node_request *requests[N];
	struct mmc_node_stream *streams[N];
	struct mmc_node *nodes_of[N];
	int fd = segment_fd(SEGMENT_BYTES);

	options.nodes = nodes;
	options.slot_bytes = N * 64;
	for (uint32_t i = 0; i < N; i++) {
		const struct mmc_operation operation = {
			.kind = MMC_ALLGATHER,
			.block_bytes = 1,
			.recv = results[i],
		};

		options.rank = i;
		results[i][i] = (uint8_t)(i + 1);
		CHECK_EQ(mmc_node_open(i == 0 ? fd : dup(fd), SEGMENT_BYTES, i,
				       N, &nodes_of[i]),
			 0);
		CHECK_EQ(mmc_node_stream_create(nodes_of[i], &options,
						&streams[i]),
			 0);
		CHECK_EQ(mmc_node_start(streams[i], &operation, 0,
					&requests[i]),
			 i == N - 1 ? 0 : MMC_EAGAIN);
	}
	for (uint32_t i = 0; i < N; i++) {
		if (requests[i] != NULL)
			CHECK_EQ(mmc_node_request_wait(requests[i], 0), 0);
		mmc_node_request_free(requests[i]);
		for (uint32_t k = 0; k < N; k++)
			CHECK_EQ(results[i][k], k + 1);
	}
	for (uint32_t i = 0; i < N; i++) {
		mmc_node_stream_close(streams[i]);
		mmc_node_close(nodes_of[i]);
	}
}

CHECK_MAIN(CHECK_TEST(parts_are_taken_as_they_come),
	   CHECK_TEST(a_bcast_awaits_its_root_alone),
	   CHECK_TEST(blocks_without_bytes_are_awaited),
	   CHECK_TEST(nothing_is_copied_after_a_failure),
	   CHECK_TEST(many_members_are_told_apart))
