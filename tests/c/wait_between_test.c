/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom members wait for where there are other nodes. The test is rank 0 or rank 1, which
 * share a node; the other of the two and the other nodes are played by hand.
 */
#include <pthread.h>

#include "node/wait.h"
#include "node_processes.h"

enum { NBYTES = 4 * 64, SHORT_MS = 40 };

static struct mmc_node *node;
static struct mmc_node_stream *stream;
static uint8_t recv[4 * NBYTES];

/* Opens rank `rank` of four on two nodes, the first of which rank 0 leads. */
static void open_rank(uint32_t rank)
{
	static const uint32_t nodes[4] = { 0, 0, 1, 1 };
	static const uint32_t leaders[2] = { 0, 2 };
	static char between; /* which is never touched */
	struct mmc_node_stream_options options = members_options(4);

	options.rank = rank;
	options.nnodes = 2;
	options.nodes = nodes;
	options.leaders = leaders;
	options.slot_bytes = 4 * 64;
	options.late_timeout_ns = SHORT_MS * MMC_MS_NS;
	options.entry_timeout_ns = SHORT_MS * MMC_MS_NS;
	if (rank == 0)
		options.between = (struct mmc_stream *)&between;
	MMC_ASSERT(mmc_node_open(segment_fd(SEGMENT_BYTES), SEGMENT_BYTES, rank,
				 2, &node) == 0);
	MMC_ASSERT(mmc_node_stream_create(node, &options, &stream) == 0);
	/* The played member lives as long as this process. */
	node->head->bells[1 - rank].process = node->head->bells[rank].process;
}

static void close_rank(struct mmc_node_request *request)
{
	/* There is no real stream that could be left. */
	stream->options.between = NULL;
	mmc_node_request_cancel(request);
	mmc_node_request_free(request);
	mmc_node_stream_close(stream);
	mmc_node_close(node);
}

static struct mmc_node_request *start(void)
{
	struct mmc_node_request *request;

	CHECK_EQ(start_gather(stream, recv, NBYTES, &request), MMC_EAGAIN);
	return request;
}

/* Lets the other member of the node fill pieces, up to `npieces`. */
static void fill_other(uint32_t npieces, const struct mmc_node_request *request)
{
	struct mmc_node_line *line = &stream->lines[1 - stream->member];

	for (uint32_t i = 0; i < stream->options.nslots; i++)
		line->digests[i] = request->digest;
	mmc_cursor_set(&line->filled, npieces);
}

/* A call of mmc_node_sleep() returns at once, without having slept. */
static void check_sleeps_not(void)
{
	CHECK(mmc_node_find_awaited(stream).moved);
	pthread_mutex_lock(&stream->mutex);
	mmc_node_sleep(stream, 10 * MMC_S_NS);
	pthread_mutex_unlock(&stream->mutex);
	CHECK_EQ(stream->counts.sleeps, 0);
}

static void check_failure(struct mmc_node_request *request, int error,
			  uint32_t culprit)
{
	struct mmc_failure failure;

	CHECK_EQ(mmc_node_request_wait(request, LONG_NS), error);
	mmc_node_request_failure(request, &failure);
	CHECK_EQ(failure.culprit, culprit);
}

/* Members await their neighbours' parts first, and then what their leader forwards. */
static void a_member_awaits_neighbours_then_its_leader(void)
{
	struct mmc_node_request *request;
	struct mmc_node_awaited whom;

	open_rank(1);
	request = start();
	whom = mmc_node_find_awaited(stream);
	CHECK_EQ(whom.rank, 0);
	CHECK(!whom.entered && !whom.between && !whom.moved);
	CHECK(whom.cursor == &stream->head->arrived);
	fill_other(1, request);
	whom = mmc_node_find_awaited(stream);
	CHECK_EQ(whom.rank, 0);
	CHECK(whom.entered && whom.between && !whom.moved);
	close_rank(request);
}

static void a_piece_that_has_arrived_lets_nobody_sleep(void)
{
	struct mmc_node_request *request;

	open_rank(1);
	request = start();
	fill_other(1, request);
	mmc_cursor_set(&stream->head->arrived, 1);
	check_sleeps_not();
	close_rank(request);
}

/* A leader that can forward has nobody to wait for. */
static void a_leader_with_all_parts_does_not_sleep(void)
{
	struct mmc_node_request *request;

	open_rank(0);
	request = start();
	CHECK_EQ(mmc_node_find_awaited(stream).rank, 1);
	CHECK(!mmc_node_find_awaited(stream).moved);
	fill_other(1, request);
	check_sleeps_not();
	close_rank(request);
}

/* How long other nodes may take is the stream between's matter, not this one's. */
static void other_nodes_may_take_their_time(void)
{
	struct mmc_node_request *request;

	open_rank(1);
	request = start();
	fill_other(2, request);
	CHECK_EQ(mmc_node_request_wait(request, 3 * SHORT_MS * MMC_MS_NS),
		 MMC_EAGAIN);
	close_rank(request);
}

static void a_leader_that_never_enters(void)
{
	struct mmc_node_request *request;

	open_rank(1);
	request = start();
	check_failure(request, -MMC_ENOENTRY, 0);
	close_rank(request);
}

/* A leader that stops before it has filled the next piece is late as any other. */
static void a_leader_that_stands_still(void)
{
	struct mmc_node_request *request;

	open_rank(1);
	request = start();
	CHECK_EQ(request->pieces.npieces, 4);
	fill_other(1, request);
	mmc_cursor_set(&stream->head->arrived, 1);
	check_failure(request, -MMC_ELATE, 0);
	close_rank(request);
}

CHECK_MAIN(CHECK_TEST(a_member_awaits_neighbours_then_its_leader),
	   CHECK_TEST(a_piece_that_has_arrived_lets_nobody_sleep),
	   CHECK_TEST(a_leader_with_all_parts_does_not_sleep),
	   CHECK_TEST(other_nodes_may_take_their_time),
	   CHECK_TEST(a_leader_that_never_enters),
	   CHECK_TEST(a_leader_that_stands_still))
