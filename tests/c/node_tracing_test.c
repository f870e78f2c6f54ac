/* SPDX-License-Identifier: BSD-3-Clause */
/* What node streams tell their traces: operations, and which members were awaited. */
#include "node/tracing.h"

#include "node_members.h"

enum { NSLOTS = 32, NBYTES = 100, TRACK = 3 };

static struct members members;
static struct mmc_trace *traces[2];
static struct mmc_trace_event events[NSLOTS];
static uint8_t recv[2][2 * NBYTES];

static void open_traced(void)
{
	members_open(&members, 2, members_options(2));
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(mmc_trace_create(NSLOTS, &traces[i]), 0);
		CHECK_EQ(mmc_node_stream_set_trace(members.streams[i],
						   traces[i], TRACK),
			 0);
	}
}

static void close_traced(void)
{
	members_close(&members);
	for (uint32_t i = 0; i < 2; i++)
		mmc_trace_free(traces[i]);
}

/* Starts an Allgather of a member without waiting. Returns what mmc_node_start() does. */
static int start(uint32_t member, struct mmc_node_request **request)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.recv = recv[member],
	};

	return mmc_node_start(members.streams[member], &operation, 0, request);
}

/* A member that finds all others' parts has an operation without stages or waits. */
static void nobody_waits(void)
{
	struct mmc_node_request *first;
	struct mmc_node_request *second;
	uint64_t nadded;

	open_traced();
	CHECK_EQ(start(0, &first), MMC_EAGAIN);
	CHECK_EQ(start(1, &second), 0);
	CHECK_EQ(mmc_trace_read(traces[1], events, &nadded), 1);
	CHECK_EQ(events[0].kind, MMC_TRACE_OPERATION);
	CHECK_EQ(events[0].detail, MMC_ALLGATHER);
	CHECK_EQ(events[0].amount, NBYTES);
	CHECK_EQ(events[0].epoch, 1);
	CHECK_EQ(events[0].count, 0);
	CHECK_EQ(events[0].peer, UINT32_MAX);
	CHECK_EQ(events[0].track, TRACK);
	CHECK(events[0].begin_ns > 0 && events[0].begin_ns <= events[0].end_ns);
	CHECK_EQ(mmc_node_request_wait(first, 0), 0);
	mmc_node_request_free(first);
	close_traced();
}

/*
 * A member waits for one that is late: a wait for it, and the entry as a stage. The entry
 * goes on until the late member has entered, though the last sleep ended before.
 */
static void a_late_member(void)
{
	struct mmc_node_request *first;
	struct mmc_node_request *second;
	uint64_t entered_ns;
	uint64_t nadded;

	open_traced();
	CHECK_EQ(start(0, &first), MMC_EAGAIN);
	CHECK_EQ(mmc_node_request_wait(first, 2 * MMC_MS_NS), MMC_EAGAIN);
	CHECK_EQ(mmc_node_request_wait(first, 2 * MMC_MS_NS), MMC_EAGAIN);
	CHECK_EQ(start(1, &second), 0);
	CHECK_EQ(mmc_node_request_wait(first, MMC_S_NS), 0);
	mmc_node_request_free(first);
	CHECK_EQ(mmc_trace_read(traces[0], events, &nadded), 4);
	CHECK_EQ(events[0].kind, MMC_TRACE_WAIT);
	CHECK_EQ(events[0].peer, 1);
	CHECK_EQ(events[0].detail, MMC_TRACE_ENTRY);
	CHECK(events[0].count >= 2);
	CHECK(events[0].amount >= 4 * MMC_MS_NS);
	CHECK_EQ(events[1].kind, MMC_TRACE_STAGE);
	CHECK_EQ(events[1].detail, MMC_TRACE_ENTRY);
	CHECK_EQ(events[2].detail, MMC_TRACE_PIECES);
	CHECK_EQ(events[3].kind, MMC_TRACE_OPERATION);
	CHECK_EQ(events[1].begin_ns, events[3].begin_ns);
	CHECK_EQ(events[1].end_ns, events[2].begin_ns);
	CHECK_EQ(events[2].end_ns, events[3].end_ns);
	CHECK(events[0].begin_ns >= events[1].begin_ns &&
	      events[0].end_ns <= events[1].end_ns);
	entered_ns = events[1].end_ns;
	CHECK_EQ(mmc_trace_read(traces[1], events, &nadded), 1);
	CHECK(events[0].begin_ns < entered_ns);
	close_traced();
}

/* A request that is given up ends as an operation that has failed. */
static void a_failure(void)
{
	struct mmc_node_request *first;
	uint64_t nadded;
	uint32_t n;

	open_traced();
	CHECK_EQ(start(0, &first), MMC_EAGAIN);
	CHECK_EQ(mmc_node_request_wait(first, MMC_MS_NS), MMC_EAGAIN);
	mmc_node_request_cancel(first);
	mmc_node_request_free(first);
	n = mmc_trace_read(traces[0], events, &nadded);
	CHECK_EQ(n, 4);
	CHECK_EQ(events[0].kind, MMC_TRACE_WAIT);
	CHECK_EQ(events[0].peer, 1);
	CHECK_EQ(events[n - 1].kind, MMC_TRACE_OPERATION);
	CHECK_EQ(events[n - 1].count, MMC_ECANCELED);
	CHECK_EQ(events[n - 1].peer, 0);
	close_traced();
}

CHECK_MAIN(CHECK_TEST(nobody_waits), CHECK_TEST(a_late_member),
	   CHECK_TEST(a_failure))
