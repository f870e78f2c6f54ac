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
static uint8_t recv[6 * NBYTES];

/*
 * Opens rank `rank` of `n` on each of two nodes. Rank 0 leads the first node on the first
 * rail, and rank 1 on the second.
 */
static void open_rank_of(uint32_t n, uint32_t rank, uint32_t nrails)
{
	const uint32_t nodes[6] = { 0, 0, n < 3, 1, 1, 1 };
	const uint32_t leaders[4] = { 0, n, 1, n + 1 };
	static char between; /* which is never touched */
	struct mmc_node_stream_options options = members_options(2 * n);

	options.rank = rank;
	options.nnodes = 2;
	options.nrails = nrails;
	options.nodes = nodes;
	options.leaders = leaders;
	options.slot_bytes = 2 * n * 64;
	options.late_timeout_ns = SHORT_MS * MMC_MS_NS;
	options.entry_timeout_ns = SHORT_MS * MMC_MS_NS;
	if (rank < nrails)
		options.between = (struct mmc_stream *)&between;
	MMC_ASSERT(mmc_node_open(segment_fd(SEGMENT_BYTES), SEGMENT_BYTES, rank,
				 n, &node) == 0);
	MMC_ASSERT(mmc_node_stream_create(node, &options, &stream) == 0);
	/* The played members live as long as this process. */
	for (uint32_t i = 0; i < n; i++)
		node->head->bells[i].process = node->head->bells[rank].process;
}

/* Opens rank `rank` of four on two nodes, the first of which rank 0 leads. */
static void open_rank(uint32_t rank)
{
	open_rank_of(2, rank, 1);
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

/* Lets the other members of the node fill pieces, up to `npieces`. */
static void fill_other(uint32_t npieces, const struct mmc_node_request *request)
{
	for (uint32_t member = 0; member < node->nmembers; member++) {
		struct mmc_node_line *line = &stream->lines[member];

		if (member == stream->member)
			continue;
		for (uint32_t i = 0; i < stream->options.nslots; i++)
			line->digests[i] = request->digest;
		mmc_cursor_set(&line->filled, npieces);
	}
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
	CHECK(whom.cursor == &stream->head->rails[0].arrived);
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
	mmc_cursor_set(&stream->head->rails[0].arrived, 1);
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
	mmc_cursor_set(&stream->head->rails[0].arrived, 1);
	check_failure(request, -MMC_ELATE, 0);
	close_rank(request);
}

/* ---- several rails ------------------------------------------------------- */

/* Pieces come by turns from the leaders of the rails. */
static void a_member_awaits_the_leader_of_a_piece(void)
{
	struct mmc_node_request *request;
	struct mmc_node_awaited whom;

	open_rank_of(3, 2, 2);
	request = start();
	for (uint32_t piece = 0; piece < 4; piece++) {
		struct mmc_node_rail *rail = &stream->head->rails[piece % 2];

		fill_other(piece + 1, request);
		whom = mmc_node_find_awaited(stream);
		CHECK_EQ(whom.rank, piece % 2);
		CHECK(whom.cursor == &rail->arrived);
		CHECK(whom.between && !whom.moved);
		for (uint32_t i = 0; i < 2; i++)
			mmc_cursor_set(&stream->lines[i].read, piece + 1);
		mmc_cursor_set(&rail->arrived, piece + 1);
		CHECK_EQ(mmc_node_request_wait(request, 0),
			 piece == 3 ? 0 : MMC_EAGAIN);
	}
	mmc_node_request_free(request);
	mmc_node_stream_close(stream);
	mmc_node_close(node);
}

/* A leader has nothing to do with a piece of another rail but to wait for it. */
static void a_leader_awaits_another_one(void)
{
	struct mmc_node_request *request;
	struct mmc_node_awaited whom;

	open_rank_of(2, 1, 2);
	request = start();
	fill_other(1, request);
	CHECK_EQ(mmc_node_request_wait(request, 0), MMC_EAGAIN);
	CHECK_EQ(stream->nforwarded, 1);
	whom = mmc_node_find_awaited(stream);
	CHECK_EQ(whom.rank, 0);
	CHECK(whom.cursor == &stream->head->rails[0].arrived);
	CHECK(whom.between && !whom.moved);
	close_rank(request);
}

/* While it does, it looks again and again whether it can forward a piece of its own. */
static void a_leader_that_awaits_another_one_looks_often(void)
{
	struct mmc_node_request *request;

	open_rank_of(2, 1, 2);
	request = start();
	fill_other(1, request);
	CHECK_EQ(mmc_node_request_wait(request, 200 * MMC_MS_NS), MMC_EAGAIN);
	CHECK(stream->counts.sleeps > 20);
	close_rank(request);
}

/* Even if the awaited piece is another rail's, a leader that has ended is missed. */
static void a_leader_of_any_rail_that_has_ended(void)
{
	struct mmc_node_request *request;

	open_rank_of(3, 2, 2);
	request = start();
	fill_other(1, request);
	CHECK_EQ(mmc_node_find_awaited(stream).rank, 0);
	atomic_store(&node->head->bells[1].process, 0);
	check_failure(request, -MMC_EGONE, 1);
	close_rank(request);
}

CHECK_MAIN(CHECK_TEST(a_member_awaits_neighbours_then_its_leader),
	   CHECK_TEST(a_piece_that_has_arrived_lets_nobody_sleep),
	   CHECK_TEST(a_leader_with_all_parts_does_not_sleep),
	   CHECK_TEST(other_nodes_may_take_their_time),
	   CHECK_TEST(a_leader_that_never_enters),
	   CHECK_TEST(a_leader_that_stands_still),
	   CHECK_TEST(a_member_awaits_the_leader_of_a_piece),
	   CHECK_TEST(a_leader_awaits_another_one),
	   CHECK_TEST(a_leader_that_awaits_another_one_looks_often),
	   CHECK_TEST(a_leader_of_any_rail_that_has_ended))
