/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a node: every kind, in threads, against what MPI's rules say. */
#include "node/request.h"

#include "node_program.h"

static void random_programs_end_as_mpi_says(void)
{
	static struct program program;
	struct mmc_prng prng;

	prng.state = check_seed();
	for (uint32_t round = 0; round < 24; round++) {
		struct mmc_node_stream_options options;
		struct members members;

		program.nranks = 1 + (uint32_t)mmc_prng_below(&prng, 7);
		draw(&program, &prng);
		options = members_options(program.nranks);
		options.nslots = 1U << mmc_prng_below(&prng, 3);
		options.slot_bytes = 512 * (1 + mmc_prng_below(&prng, 40));
		members_open(&members, program.nranks, options);
		run_program(&program, members.streams, check_seed() + round);
		members_close(&members);
	}
}

/* Operations that would need more pieces than cursors can tell apart are refused. */
static void operations_of_too_many_pieces_are_refused(void)
{
	uint64_t sizes[2] = { 8, UINT64_C(1) << 44 };
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = UINT64_C(1) << 50,
	};
	struct mmc_node_request *request;
	struct members members;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	operation.kind = MMC_BCAST;
	operation.root = 1;
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	operation.kind = MMC_ALLGATHERV;
	operation.blocks_bytes = sizes;
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	CHECK(request == NULL);
	CHECK_EQ(members.streams[0]->next_piece, 0);
	CHECK_EQ(members.streams[0]->epoch, 0);
	CHECK_EQ(members.streams[0]->counts.operations, 0);
	members_close(&members);
}

static void wrong_arguments_are_refused(void)
{
	struct mmc_operation operation = { .kind = MMC_BCAST, .root = 2 };
	struct mmc_node_request *request;
	struct members members;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	operation.kind = MMC_ALLGATHERV;
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	operation.kind = 9;
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 -MMC_EINVAL);
	CHECK(request == NULL);
	members_close(&members);
}

/* Starts a Bcast of 8 bytes from rank 1, in memory that outlives it. */
static struct mmc_node_request *start_bcast(struct members *members,
					    uint32_t rank)
{
	static uint64_t words[MEMBERS_MAX];
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.root = 1,
		.block_bytes = 8,
		.recv = &words[rank],
	};
	struct mmc_node_request *request;

	CHECK(mmc_node_start(members->streams[rank], &operation, 0, &request) >=
	      0);
	return request;
}

/* So the others copy one while the root copies the next. */
static void a_bcast_on_one_node_takes_several_pieces(void)
{
	static uint8_t results[2][3 * 65536 + 1];
	struct mmc_node_stream_options options = members_options(2);
	struct mmc_node_request *requests[2];
	struct members members;

	options.slot_bytes = 512 << 10;
	members_open(&members, 2, options);
	memset(results[0], 7, sizeof(results[0]));
	for (uint32_t i = 0; i < 2; i++) {
		const struct mmc_operation operation = {
			.kind = MMC_BCAST,
			.block_bytes = sizeof(results[i]),
			.recv = results[i],
		};

		CHECK(mmc_node_start(members.streams[i], &operation, 0,
				     &requests[i]) >= 0);
		if (i == 0)
			CHECK_EQ(requests[0]->pieces.npieces, 4);
	}
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), 0);
	if (requests[1] != NULL) {
		CHECK_EQ(mmc_node_request_wait(requests[1], 0), 0);
		mmc_node_request_free(requests[1]);
	}
	CHECK_BYTES(results[1], results[0], sizeof(results[0]));
	mmc_node_request_free(requests[0]);
	members_close(&members);
}

static void tables_are_not_read_after_the_start(void)
{
	uint64_t sizes[2] = { 3, 5 };
	uint64_t offsets[2] = { 10, 0 };
	uint8_t results[2][13];
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = sizes,
		.offsets_bytes = offsets,
		.recv = results[0],
	};
	struct mmc_node_request *request;
	struct mmc_node_request *none;
	struct members members;

	members_open(&members, 2, members_options(2));
	memset(results, 0, sizeof(results));
	memset(results[0] + 10, 1, 3);
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0, &request),
		 MMC_EAGAIN);
	operation.recv = results[1];
	operation.offsets_bytes = NULL;
	memset(results[1] + 3, 2, 5);
	CHECK_EQ(mmc_node_start(members.streams[1], &operation, 0, &none), 0);
	CHECK(none == NULL);
	memset(sizes, 0xff, sizeof(sizes));
	memset(offsets, 0xff, sizeof(offsets));
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	CHECK_BYTES(results[0], "\2\2\2\2\2\0\0\0\0\0\1\1\1", 13);
	CHECK_BYTES(results[1], "\1\1\1\2\2\2\2\2\0\0\0\0\0", 13);
	mmc_node_request_free(request);
	members_close(&members);
}

/* A request that has ended is used again, so that operations allocate nothing. */
static void requests_are_used_again(void)
{
	struct mmc_node_request *first;
	struct members members;

	members_open(&members, 2, members_options(2));
	first = start_bcast(&members, 0);
	CHECK(start_bcast(&members, 1) == NULL);
	CHECK_EQ(mmc_node_request_wait(first, 0), 0);
	mmc_node_request_free(first);
	for (int i = 0; i < 5; i++) {
		struct mmc_node_request *next = start_bcast(&members, 0);

		CHECK(next == first);
		CHECK(start_bcast(&members, 1) == NULL);
		CHECK_EQ(mmc_node_request_wait(next, 0), 0);
		mmc_node_request_free(next);
	}
	members_close(&members);
}

/* What a request waits for can be asked, and is nobody once its data is there. */
static void a_request_says_whom_it_awaits(void)
{
	struct mmc_node_request *request;
	struct mmc_waiting waiting;
	struct members members;

	members_open(&members, 2, members_options(2));
	request = start_bcast(&members, 0);
	mmc_node_request_waiting(request, &waiting);
	CHECK_EQ(waiting.rank, 1);
	CHECK_EQ(waiting.unentered, 1);
	CHECK_EQ(waiting.entered, 0);
	CHECK_EQ(waiting.epoch, 1);
	CHECK_EQ(waiting.missing_chunks, 1);
	start_bcast(&members, 1);
	mmc_node_request_waiting(request, &waiting);
	CHECK_EQ(waiting.rank, UINT32_MAX);
	CHECK_EQ(waiting.unentered, UINT32_MAX);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	mmc_node_request_waiting(request, &waiting);
	CHECK_EQ(waiting.missing_chunks, 0);
	mmc_node_request_free(request);
	members_close(&members);
}

/* An operation that is not ready keeps its place, and its memory is not touched. */
static void an_unready_request_waits(void)
{
	uint64_t word = 0;
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.unready = 1,
		.block_bytes = sizeof(word),
		.recv = &word,
	};
	struct mmc_node_request *requests[2], *other;
	struct mmc_waiting waiting;
	struct members members;

	members_open(&members, 2, members_options(2));
	CHECK_EQ(mmc_node_start(members.streams[0], &operation, 0,
				&requests[0]),
		 MMC_EAGAIN);
	requests[1] = start_bcast(&members, 0);
	CHECK_EQ(mmc_node_start(members.streams[1],
				&(struct mmc_operation){
					.kind = MMC_BCAST,
					.block_bytes = sizeof(word),
					.recv = &(uint64_t){ 0 },
				},
				0, &other),
		 MMC_EAGAIN);
	CHECK_EQ(mmc_node_request_wait(requests[0], MMC_MS_NS), MMC_EAGAIN);
	mmc_node_request_waiting(requests[0], &waiting);
	CHECK_EQ(waiting.rank, 0);
	CHECK_EQ(members.streams[0]->nfilled, 0);
	word = 77;
	mmc_node_request_ready(requests[0]);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), 0);
	CHECK_EQ(mmc_node_request_wait(other, 0), 0);
	CHECK_EQ(*(uint64_t *)other->operation.recv, 77);
	CHECK(start_bcast(&members, 1) == NULL);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), 0);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[1]);
	mmc_node_request_free(other);
	members_close(&members);
}

/* A request behind others lacks all its pieces, and has no number yet to be named by. */
static void a_queued_request_lacks_everything(void)
{
	struct mmc_node_request *requests[2];
	struct mmc_waiting waiting;
	struct members members;

	members_open(&members, 2, members_options(2));
	for (uint32_t i = 0; i < 2; i++)
		requests[i] = start_bcast(&members, 0);
	mmc_node_request_waiting(requests[1], &waiting);
	CHECK_EQ(waiting.epoch, 0);
	CHECK_EQ(waiting.missing_chunks, 1);
	for (uint32_t i = 0; i < 2; i++)
		start_bcast(&members, 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(mmc_node_request_wait(requests[i], 0), 0);
		mmc_node_request_free(requests[i]);
	}
	members_close(&members);
}

CHECK_MAIN(CHECK_TEST(random_programs_end_as_mpi_says),
	   CHECK_TEST(operations_of_too_many_pieces_are_refused),
	   CHECK_TEST(wrong_arguments_are_refused),
	   CHECK_TEST(a_bcast_on_one_node_takes_several_pieces),
	   CHECK_TEST(tables_are_not_read_after_the_start),
	   CHECK_TEST(requests_are_used_again),
	   CHECK_TEST(a_request_says_whom_it_awaits),
	   CHECK_TEST(an_unready_request_waits),
	   CHECK_TEST(a_queued_request_lacks_everything))
