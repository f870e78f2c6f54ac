/* SPDX-License-Identifier: BSD-3-Clause */
/* Two members read blocks from each other's memory; where they cannot, slots serve. */
#include "node/cross.h"

#include "node_policy.h"
#include "node_processes.h"
#include "node_program.h"

enum { NBYTES = 50000, CROSS_BYTES = 40000 };

static uint8_t send[NBYTES];
static uint8_t recv[2 * NBYTES];

/* Returns an operation of two members of which this is `rank`, with its block ready. */
static struct mmc_operation ready(uint32_t kind, uint64_t nbytes, bool in_place,
				  uint32_t rank)
{
	static uint64_t sizes[2];
	struct mmc_operation operation = {
		.kind = kind,
		.block_bytes = nbytes,
		.recv = recv,
	};

	sizes[0] = nbytes;
	sizes[1] = nbytes / 2;
	memset(recv, 0xee, sizeof(recv));
	if (kind == MMC_BCAST) {
		if (rank == 0)
			fill_block(recv, nbytes, kind, 0);
		return operation;
	}
	if (kind == MMC_ALLGATHERV)
		operation.blocks_bytes = sizes;
	operation.send = in_place ? NULL : send;
	fill_block(in_place ? recv + rank * nbytes : send, nbytes, kind, rank);
	return operation;
}

/* Returns whether the result is what MPI's rules say. */
static bool is_right_result(uint32_t kind, uint64_t nbytes)
{
	static uint8_t block[NBYTES];
	bool right;

	fill_block(block, nbytes, kind, 0);
	right = memcmp(recv, block, nbytes) == 0;
	if (kind == MMC_BCAST)
		return right && recv[nbytes] == 0xee;
	fill_block(block, nbytes, kind, 1);
	return right &&
	       memcmp(recv + nbytes, block,
		      kind == MMC_ALLGATHERV ? nbytes / 2 : nbytes) == 0;
}

/* Runs an operation; returns its error, or 1 if the result is wrong. */
static int run(struct mmc_node_stream *stream, uint32_t kind, uint64_t nbytes,
	       bool in_place)
{
	struct mmc_operation operation =
		ready(kind, nbytes, in_place, stream->options.rank);
	struct mmc_node_request *request;
	int rv = mmc_node_start(stream, &operation, 0, &request);
	struct report report = finish_report(request, rv);

	return report.rv != 0 ? report.rv : !is_right_result(kind, nbytes);
}

/* Every form of an operation, which both members run. */
static int run_all(struct mmc_node_stream *stream)
{
	int rv = 0;

	for (uint32_t turn = 0; turn < 20 && rv == 0; turn++) {
		rv = run(stream, MMC_ALLGATHER, NBYTES, turn % 2);
		if (rv == 0)
			rv = run(stream, MMC_ALLGATHERV, NBYTES, false);
		if (rv == 0)
			rv = run(stream, MMC_BCAST, NBYTES, false);
		/* A short one goes through slots, between others that do not. */
		if (rv == 0)
			rv = run(stream, MMC_ALLGATHER, 100 * turn, false);
	}
	return rv;
}

static void act_run_all(struct mmc_node_stream *stream,
			struct processes_shared *shared)
{
	mmc_node_stream_set_cross(stream, CROSS_BYTES / 2);
	shared->reports[1].rv = run_all(stream);
	/* What the first has read of an Allgather's and an Allgatherv's second block. */
	shared->reports[1].failure.epoch = (uint32_t)stream->counts.cross_bytes;
}

static void blocks_are_copied_once(void)
{
	processes_act *const acts[] = { NULL, act_run_all };
	struct processes processes;
	const struct mmc_node_counts *counts;

	processes_open(&processes, 2, members_options(2), acts);
	mmc_node_stream_set_cross(processes.stream, CROSS_BYTES / 2);
	CHECK_EQ(run_all(processes.stream), 0);
	processes_join(&processes, 1);
	CHECK_EQ(processes.shared->reports[1].rv, 0);
	counts = &processes.stream->counts;
	CHECK_EQ(counts->cross_bytes, 20 * (NBYTES + NBYTES / 2));
	CHECK_EQ(processes.shared->reports[1].failure.epoch, 20 * 3 * NBYTES);
	/* The short ones alone. */
	CHECK_EQ(counts->tx_bytes, 100 * 190);
	CHECK_EQ(counts->rx_bytes, 100 * 190);
	processes_close(&processes);
}

/* An act: loses the right to read, or to be read, between two operations. */
static void act_refuse(struct mmc_node_stream *stream,
		       struct processes_shared *shared)
{
	mmc_node_stream_set_cross(stream, CROSS_BYTES / 2);
	shared->reports[1].rv = run(stream, MMC_ALLGATHER, NBYTES, false);
	refuse_reads();
	if (shared->reports[1].rv == 0)
		shared->reports[1].rv = run_all(stream);
}

/* One member can still read, but both take the slots. */
static void slots_serve_where_the_kernel_refuses(void)
{
	processes_act *const acts[] = { NULL, act_refuse };
	struct processes processes;
	uint64_t before_bytes;

	processes_open(&processes, 2, members_options(2), acts);
	mmc_node_stream_set_cross(processes.stream, CROSS_BYTES / 2);
	CHECK_EQ(run(processes.stream, MMC_ALLGATHER, NBYTES, false), 0);
	CHECK_EQ(processes.stream->counts.cross_bytes, NBYTES);
	before_bytes = processes.stream->counts.rx_bytes;
	CHECK_EQ(run_all(processes.stream), 0);
	processes_join(&processes, 1);
	CHECK_EQ(processes.shared->reports[1].rv, 0);
	CHECK_EQ(processes.stream->counts.rx_bytes - before_bytes,
		 20 * (NBYTES + NBYTES / 2) + 100 * 190);
	processes_close(&processes);
}

/* An act: tells where its block lies, and does nothing more. */
static void act_advertise(struct mmc_node_stream *stream,
			  struct processes_shared *shared)
{
	struct mmc_operation operation =
		ready(MMC_ALLGATHER, NBYTES, false, stream->options.rank);
	struct mmc_node_request *request;

	mmc_node_stream_set_cross(stream, CROSS_BYTES);
	mmc_node_start(stream, &operation, 0, &request);
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

/* Nobody knows whether the dead member had read all. */
static void check_death(bool before)
{
	processes_act *const acts[] = { NULL, act_advertise };
	struct mmc_operation operation;
	struct mmc_node_request *request;
	struct processes processes;
	struct report report;
	int rv;

	processes_open(&processes, 2, members_options(2), acts);
	mmc_node_stream_set_cross(processes.stream, CROSS_BYTES);
	await_count(&processes.shared->nready, 1);
	if (before)
		processes_kill(&processes, 1);
	operation = ready(MMC_ALLGATHER, NBYTES, false, 0);
	rv = mmc_node_start(processes.stream, &operation, 0, &request);
	CHECK_EQ(rv, MMC_EAGAIN);
	CHECK_EQ(processes.stream->counts.cross_bytes, before ? 0 : NBYTES);
	if (!before)
		processes_kill(&processes, 1);
	report = finish_report(request, rv);
	CHECK_EQ(report.rv, -MMC_EGONE);
	CHECK_EQ(report.failure.culprit, 1);
	processes_close(&processes);
}

static void a_sender_killed_before_it_is_read(void)
{
	check_death(true);
}

static void a_reader_killed_before_its_verdict(void)
{
	check_death(false);
}

/* ---- in one process ------------------------------------------------------ */

static struct members members;

static void open_members(uint32_t n, uint64_t nbytes)
{
	members_open(&members, n, members_options(n));
	for (uint32_t i = 0; i < n; i++)
		mmc_node_stream_set_cross(members.streams[i], nbytes);
}

/* Returns how an operation would be delivered; nothing of it is moved. */
static enum mmc_node_delivery planned(uint32_t kind, uint64_t nbytes)
{
	const struct mmc_operation operation = {
		.kind = kind,
		.block_bytes = nbytes,
		.recv = recv,
	};
	struct mmc_node_request *request;

	CHECK_EQ(mmc_node_request_put(members.streams[0], &operation, &request),
		 0);
	return request->delivery;
}

static void size_and_members_decide(void)
{
	open_members(2, CROSS_BYTES);
	CHECK_EQ(planned(MMC_ALLGATHER, CROSS_BYTES - 1), MMC_NODE_COPIES);
	CHECK_EQ(planned(MMC_ALLGATHER, CROSS_BYTES), MMC_NODE_CROSS);
	CHECK_EQ(planned(MMC_BCAST, 2 * CROSS_BYTES - 1), MMC_NODE_COPIES);
	CHECK_EQ(planned(MMC_BCAST, 2 * CROSS_BYTES), MMC_NODE_CROSS);
	CHECK_EQ(planned(MMC_NODE_BARRIER, 0), MMC_NODE_COPIES);
	CHECK_EQ(planned(MMC_BCAST, 1 << 30), MMC_NODE_CROSS);
	CHECK_EQ(planned(MMC_BCAST, (1 << 30) + 1), MMC_NODE_COPIES);
	CHECK_EQ(planned(MMC_ALLGATHER, 1 << 29), MMC_NODE_CROSS);
	CHECK_EQ(planned(MMC_ALLGATHER, (1 << 29) + 1), MMC_NODE_COPIES);
	members_close(&members);
	open_members(2, 0);
	CHECK_EQ(planned(MMC_ALLGATHER, CROSS_BYTES), MMC_NODE_COPIES);
	members_close(&members);
	open_members(3, CROSS_BYTES);
	CHECK_EQ(planned(MMC_ALLGATHER, CROSS_BYTES), MMC_NODE_COPIES);
	members_close(&members);
}

/* Starts an Allgather on a member of this process, with results of its own. */
static struct mmc_node_request *start(uint32_t rank, uint64_t nbytes)
{
	static uint8_t results[2][2 * NBYTES];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = nbytes,
		.recv = results[rank],
	};
	struct mmc_node_request *request;

	mmc_node_start(members.streams[rank], &operation, 0, &request);
	return request;
}

/* A sender that gives up may overwrite what is being read: the reader fails, too. */
static void a_sender_that_gives_up_fails_its_reader(void)
{
	struct mmc_node_request *requests[2];

	open_members(2, CROSS_BYTES);
	requests[0] = start(0, NBYTES);
	mmc_node_request_cancel(requests[0]);
	requests[1] = start(1, NBYTES);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), -MMC_ECANCELED);
	CHECK_EQ(members.streams[1]->counts.cross_bytes, 0);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[1]);
	members_close(&members);
	/* All have given their verdict when a member is writing its failure. */
	open_members(2, CROSS_BYTES);
	requests[0] = start(0, NBYTES);
	requests[1] = start(1, NBYTES);
	CHECK_EQ(members.streams[1]->nread, 1);
	atomic_store(&members.streams[0]->head->failing, MMC_NODE_FAILING);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), MMC_EAGAIN);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), MMC_EAGAIN);
	CHECK_EQ(members.streams[1]->nfilled, 2);
	atomic_store(&members.streams[0]->head->failing, MMC_NODE_WELL);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), 0);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), 0);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[1]);
	members_close(&members);
}

static void members_that_disagree_read_nothing(void)
{
	struct mmc_node_request *requests[2];

	open_members(2, CROSS_BYTES);
	requests[0] = start(0, NBYTES);
	requests[1] = start(1, CROSS_BYTES - 1);
	CHECK_EQ(mmc_node_request_wait(requests[1], 0), -MMC_EMISMATCH);
	CHECK_EQ(mmc_node_request_wait(requests[0], 0), -MMC_EMISMATCH);
	CHECK_EQ(members.streams[0]->counts.cross_bytes, 0);
	mmc_node_request_free(requests[0]);
	mmc_node_request_free(requests[1]);
	members_close(&members);
}

/* Random operations of all sizes, of which several are under way on both members. */
static void programs_of_both_ways(void)
{
	static struct program program;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct mmc_prng prng = { .state = seed };

		printf("seed %" PRIu64 "\n", seed);
		program.nranks = 2;
		draw(&program, &prng);
		open_members(2, 1 + mmc_prng_below(&prng, 5000));
		run_program(&program, members.streams, seed);
		CHECK(members.streams[0]->counts.cross_bytes > 0);
		members_close(&members);
	}
}

CHECK_MAIN(CHECK_TEST(blocks_are_copied_once),
	   CHECK_TEST(slots_serve_where_the_kernel_refuses),
	   CHECK_TEST(a_sender_killed_before_it_is_read),
	   CHECK_TEST(a_reader_killed_before_its_verdict),
	   CHECK_TEST(size_and_members_decide),
	   CHECK_TEST(a_sender_that_gives_up_fails_its_reader),
	   CHECK_TEST(members_that_disagree_read_nothing),
	   CHECK_TEST(programs_of_both_ways))
