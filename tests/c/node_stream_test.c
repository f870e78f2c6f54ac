/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of a node: what is refused, how ranks leave and close them. */
#include "node/stream.h"

#include <pthread.h>
#include <string.h>

#include "node_members.h"

enum { NRANKS = 3 };

static struct mmc_node *node; /* of member 1 of 3 */

static void open_node(void)
{
	int fd = segment_fd(SEGMENT_BYTES);

	MMC_ASSERT(mmc_node_open(fd, SEGMENT_BYTES, 1, NRANKS, &node) == 0);
}

/* Returns valid options of the member. */
static struct mmc_node_stream_options valid(void)
{
	struct mmc_node_stream_options options = members_options(NRANKS);

	options.rank = 1;
	return options;
}

static int create(struct mmc_node_stream_options options)
{
	static struct mmc_node_stream some;
	struct mmc_node_stream *stream = &some;
	int rv = mmc_node_stream_create(node, &options, &stream);

	CHECK((rv == 0) == (stream != NULL));
	if (rv == 0)
		mmc_node_stream_close(stream);
	return rv;
}

/* Checks that options which differ from valid ones in one field are refused. */
#define REFUSED(field, value)                                                  \
	do {                                                                   \
		struct mmc_node_stream_options changed = valid();              \
                                                                               \
		CHECK_EQ(create(changed), 0);                                  \
		changed.field = (value);                                       \
		CHECK_EQ(create(changed), -MMC_EINVAL);                        \
	} while (0)

static void invalid_numbers_are_refused(void)
{
	open_node();
	REFUSED(nranks, 0);
	REFUSED(nranks, 1);
	REFUSED(rank, NRANKS);
	REFUSED(rank, UINT32_MAX);
	REFUSED(nnodes, 0);
	REFUSED(nnodes, NRANKS + 1);
	REFUSED(nrails, 0);
	REFUSED(nrails, MMC_NODE_RAILS_MAX + 1);
	/* Where there is one node, nothing is forwarded. */
	REFUSED(nrails, 2);
	REFUSED(nslots, 0);
	REFUSED(nslots, MMC_NODE_SLOTS_MAX + 1);
	REFUSED(nslots, 2 * MMC_NODE_SLOTS_MAX);
	REFUSED(nslots, UINT32_MAX);
	mmc_node_close(node);
}

/* Pieces take slots by turns, also where their numbers wrap round after 2^32. */
static void numbers_of_slots_divide_that_of_pieces(void)
{
	struct mmc_node_stream_options options = valid();

	open_node();
	for (uint32_t nslots = 1; nslots <= MMC_NODE_SLOTS_MAX; nslots++) {
		bool divides = (UINT64_C(1) << 32) % nslots == 0;

		options.nslots = nslots;
		CHECK_EQ(create(options), divides ? 0 : -MMC_EINVAL);
	}
	mmc_node_close(node);
}

static void invalid_sizes_are_refused(void)
{
	open_node();
	REFUSED(slot_bytes, 0);
	REFUSED(slot_bytes, 4096 + 1);
	REFUSED(slot_bytes, 4096 + 32);
	REFUSED(slot_bytes, (NRANKS - 1) * 64);
	REFUSED(slot_bytes, SEGMENT_BYTES);
	REFUSED(slot_bytes, UINT64_MAX - 63);
	REFUSED(slot_bytes, (UINT64_MAX - 63) / 2 / 64 * 64);
	mmc_node_close(node);
}

static void a_region_outside_of_the_segment_is_refused(void)
{
	uint64_t nbytes = mmc_node_stream_bytes(NRANKS, 2, 4096);
	struct mmc_node_stream_options options = valid();

	open_node();
	REFUSED(offset_bytes, 0);
	REFUSED(offset_bytes, MMC_NODE_HEAD_BYTES - 64);
	REFUSED(offset_bytes, MMC_NODE_HEAD_BYTES + 32);
	REFUSED(offset_bytes, SEGMENT_BYTES);
	REFUSED(offset_bytes, SEGMENT_BYTES + 64);
	REFUSED(offset_bytes, UINT64_MAX - 63);
	REFUSED(offset_bytes, SEGMENT_BYTES - nbytes + 64);
	options.offset_bytes = SEGMENT_BYTES - nbytes;
	CHECK_EQ(create(options), 0);
	mmc_node_close(node);
}

static void maps_that_do_not_fit_are_refused(void)
{
	static const uint32_t unknown[NRANKS] = { 0, 0, 1 };
	static const uint32_t unknown_own[NRANKS] = { 0, 7, 0 };
	static const uint32_t beyond[1] = { NRANKS };
	static const uint32_t far_beyond[1] = { UINT32_MAX };

	open_node();
	REFUSED(nodes, unknown);
	REFUSED(nodes, unknown_own);
	REFUSED(leaders, beyond);
	REFUSED(leaders, far_beyond);
	/* Member 1 is the second rank of its node, and no other. */
	REFUSED(rank, 0);
	REFUSED(rank, 2);
	mmc_node_close(node);
}

/* Returns what creation says of four ranks on two nodes, the member's led by rank 0. */
static int create_four(uint32_t rank, const uint32_t *nodes,
		       const uint32_t *leaders)
{
	struct mmc_node_stream_options options = valid();

	options.nranks = 4;
	options.nnodes = 2;
	options.rank = rank;
	options.nodes = nodes;
	options.leaders = leaders;
	return create(options);
}

static void maps_of_several_nodes_are_checked(void)
{
	static const uint32_t block[4] = { 0, 0, 0, 1 };
	static const uint32_t cyclic[4] = { 0, 1, 0, 0 };
	static const uint32_t even[4] = { 0, 0, 1, 1 };
	static const uint32_t empty[4] = { 0, 0, 0, 0 };
	static const uint32_t leaders[2] = { 0, 3 };
	static const uint32_t cyclic_leaders[2] = { 0, 1 };

	open_node();
	CHECK_EQ(create_four(1, block, leaders), 0);
	CHECK_EQ(create_four(2, cyclic, cyclic_leaders), 0);
	/* The leader of a node is one of its ranks. */
	CHECK_EQ(create_four(1, block, cyclic_leaders), -MMC_EINVAL);
	/* Three members have opened the node, not two. */
	CHECK_EQ(create_four(1, even, leaders), -MMC_EINVAL);
	CHECK_EQ(create_four(1, empty, leaders), -MMC_EINVAL);
	mmc_node_close(node);
}

/* Each rail has a leader of its own on each node. */
static void rails_have_different_leaders(void)
{
	static const uint32_t nodes[6] = { 0, 0, 0, 1, 1, 1 };
	static const uint32_t different[4] = { 0, 3, 2, 4 };
	static const uint32_t same[4] = { 0, 3, 2, 3 };
	static const uint32_t elsewhere[4] = { 0, 3, 4, 2 };
	struct mmc_node_stream_options options = valid();

	open_node();
	options.nranks = 6;
	options.nnodes = 2;
	options.nrails = 2;
	options.nodes = nodes;
	options.slot_bytes = 6 * 64;
	options.leaders = different;
	CHECK_EQ(create(options), 0);
	options.leaders = same;
	CHECK_EQ(create(options), -MMC_EINVAL);
	options.leaders = elsewhere;
	CHECK_EQ(create(options), -MMC_EINVAL);
	mmc_node_close(node);
}

/* Where there are other nodes, node leaders need a stream to them, and nobody else. */
static void a_stream_between_is_the_leaders(void)
{
	static const uint32_t nodes[4] = { 0, 0, 0, 1 };
	static const uint32_t leaders[2] = { 1, 3 };
	static char between; /* which is not looked at */
	struct mmc_node_stream_options options = valid();

	open_node();
	options.between = (struct mmc_stream *)&between;
	CHECK_EQ(create(options), -MMC_EINVAL);
	options.nranks = 4;
	options.nnodes = 2;
	options.nodes = nodes;
	options.leaders = leaders;
	CHECK_EQ(create(options), 0);
	options.between = NULL;
	CHECK_EQ(create(options), -MMC_EINVAL);
	mmc_node_close(node);
}

static void parts_of_a_stream_do_not_overlap(void)
{
	struct mmc_node_stream_options options = members_options(NRANKS);
	const struct mmc_node_stream *stream;
	struct members members;

	options.nslots = 4;
	members_open(&members, NRANKS, options);
	stream = members.streams[1];
	CHECK_EQ((uintptr_t)stream->head % 64, 0);
	CHECK_EQ((uintptr_t)stream->slots % 64, 0);
	CHECK((uint8_t *)stream->lines >= (uint8_t *)(stream->head + 1));
	CHECK(stream->slots >= (uint8_t *)(stream->lines + NRANKS));
	CHECK((uint8_t *)stream->head +
		      mmc_node_stream_bytes(NRANKS, 4, 4096) ==
	      stream->slots + 4 * options.slot_bytes);
	for (uint32_t piece = 0; piece < 9; piece++)
		CHECK(mmc_node_slot(stream, piece) ==
		      stream->slots + piece % 4 * options.slot_bytes);
	CHECK(mmc_node_slot(stream, UINT32_MAX) != mmc_node_slot(stream, 0));
	members_close(&members);
}

/* ---- operations ---------------------------------------------------------- */

static struct members members;
static uint8_t recv[NRANKS][NRANKS];

static struct mmc_node_request *start(uint32_t rank, int expected)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 1,
		.recv = recv[rank],
	};
	struct mmc_node_request *request;

	recv[rank][rank] = (uint8_t)(rank + 1);
	CHECK_EQ(mmc_node_start(members.streams[rank], &operation, 0, &request),
		 expected);
	return request;
}

/* What was started before a leave ends, and nothing is started after it. */
static void a_rank_that_leaves_starts_no_more(void)
{
	struct mmc_node_request *request;

	members_open(&members, 2, members_options(2));
	request = start(0, MMC_EAGAIN);
	mmc_node_stream_leave(members.streams[0]);
	CHECK(start(0, -MMC_EINVAL) == NULL);
	start(1, 0);
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	CHECK_EQ(recv[0][1], 2);
	mmc_node_request_free(request);
	members_close(&members);
}

/*
 * Closing gives up what is in flight and frees it: nothing is written to its buffer any
 * more, and the others fail.
 */
static void a_close_with_operations_in_flight(void)
{
	struct mmc_node_request *request;
	struct mmc_failure failure;
	uint32_t n;

	members_open(&members, 2, members_options(2));
	for (n = 0; n < 3; n++)
		start(0, MMC_EAGAIN);
	memset(recv[0], 0xee, sizeof(recv[0]));
	mmc_node_stream_close(members.streams[0]);
	request = start(1, -MMC_ECANCELED);
	mmc_node_request_free(request);
	CHECK_EQ(recv[0][0], 0xee);
	CHECK_EQ(recv[0][1], 0xee);
	mmc_node_stream_failure(members.streams[1], &failure);
	CHECK_EQ(failure.error, -MMC_ECANCELED);
	CHECK_EQ(failure.culprit, 0);
	CHECK_EQ(failure.epoch, 1);
	mmc_node_stream_close(members.streams[1]);
	members_close_nodes(&members);
}

static void a_close_without_operations_fails_nobody(void)
{
	struct mmc_failure failure;

	members_open(&members, 2, members_options(2));
	mmc_node_stream_close(members.streams[0]);
	mmc_node_stream_failure(members.streams[1], &failure);
	CHECK_EQ(failure.error, 0);
	mmc_node_stream_close(members.streams[1]);
	members_close_nodes(&members);
}

/* Two streams of one segment know nothing of each other. */
static void streams_of_a_node_are_independent(void)
{
	struct mmc_node_stream_options options = members_options(2);
	struct mmc_node_stream *others[2];
	struct mmc_node_request *request;
	struct mmc_failure failure;

	members_open(&members, 2, options);
	options.offset_bytes += mmc_node_stream_bytes(2, 2, 4096);
	for (uint32_t i = 0; i < 2; i++) {
		options.rank = i;
		CHECK_EQ(mmc_node_stream_create(members.nodes[i], &options,
						&others[i]),
			 0);
	}
	request = start(0, MMC_EAGAIN);
	mmc_node_request_cancel(request);
	mmc_node_request_free(request);
	mmc_node_stream_failure(others[1], &failure);
	CHECK_EQ(failure.error, 0);
	mmc_node_stream_failure(members.streams[1], &failure);
	CHECK_EQ(failure.error, -MMC_ECANCELED);
	for (uint32_t i = 0; i < 2; i++)
		mmc_node_stream_close(others[i]);
	members_close(&members);
}

/* Members without requests that notify are not rung for. */
static void only_attended_members_are_rung(void)
{
	struct mmc_node_head *head;

	members_open(&members, 2, members_options(2));
	head = members.nodes[0]->head;
	mmc_node_arm(members.nodes[1]);
	mmc_node_ring_attended(members.streams[0]);
	CHECK_EQ(head->bells[1].nrings, 0);
	atomic_store(&members.streams[0]->head->nattended, 1);
	mmc_node_ring_attended(members.streams[0]);
	CHECK_EQ(head->bells[1].nrings, 1);
	CHECK_EQ(head->bells[0].nrings, 0);
	members_close(&members);
}

CHECK_MAIN(CHECK_TEST(invalid_numbers_are_refused),
	   CHECK_TEST(numbers_of_slots_divide_that_of_pieces),
	   CHECK_TEST(invalid_sizes_are_refused),
	   CHECK_TEST(a_region_outside_of_the_segment_is_refused),
	   CHECK_TEST(maps_that_do_not_fit_are_refused),
	   CHECK_TEST(maps_of_several_nodes_are_checked),
	   CHECK_TEST(rails_have_different_leaders),
	   CHECK_TEST(a_stream_between_is_the_leaders),
	   CHECK_TEST(parts_of_a_stream_do_not_overlap),
	   CHECK_TEST(a_rank_that_leaves_starts_no_more),
	   CHECK_TEST(a_close_with_operations_in_flight),
	   CHECK_TEST(a_close_without_operations_fails_nobody),
	   CHECK_TEST(streams_of_a_node_are_independent),
	   CHECK_TEST(only_attended_members_are_rung))
