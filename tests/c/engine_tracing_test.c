/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams tell their traces of operations, stages, waits, stalls and repairs. */
#include "engine/tracing.h"

#include "hub.h"

#define NSLOTS 64
#define TRACK 5
#define NRANKS 3
#define LONG_NS (20 * MMC_S_NS)

static uint8_t recv[NRANKS][NRANKS * HUB_CHUNK_BYTES];
static struct mmc_trace *traces[NRANKS];
static struct mmc_request *requests[NRANKS];
static struct mmc_trace_event events[NSLOTS];
static uint32_t nevents;

/* Opens the ranks, and has each traced that the test does not play. */
static void open_traced(struct hub_options options)
{
	options.nranks = NRANKS;
	hub_open(&options);
	for (uint32_t r = 0; r < hub_nengines(); r++) {
		CHECK_EQ(mmc_trace_create(NSLOTS, &traces[r]), 0);
		CHECK_EQ(mmc_stream_set_trace(hub[r].stream, traces[r], TRACK),
			 0);
	}
}

static void close_traced(void)
{
	uint32_t n = hub_nengines();

	hub_close();
	for (uint32_t r = 0; r < n; r++)
		mmc_trace_free(traces[r]);
}

/* Completes the requests of all ranks. */
static void complete_all(void)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		hub_check(recv[r], HUB_CHUNK_BYTES);
		mmc_request_free(requests[r]);
	}
}

static void read_events(uint32_t r)
{
	uint64_t nadded;

	nevents = mmc_trace_read(traces[r], events, &nadded);
	CHECK_EQ(nadded, nevents);
	for (uint32_t i = 0; i < nevents; i++) {
		CHECK_EQ(events[i].track, TRACK);
		CHECK(events[i].begin_ns <= events[i].end_ns);
	}
}

/* Returns the only event of a kind, and with this detail if it is not 0; or a zero. */
static struct mmc_trace_event only(uint32_t kind, uint32_t detail)
{
	struct mmc_trace_event found = { 0 };

	for (uint32_t i = 0; i < nevents; i++) {
		if (events[i].kind != kind ||
		    (detail != 0 && events[i].detail != detail))
			continue;
		CHECK_EQ(found.kind, 0);
		found = events[i];
	}
	return found;
}

/* Checks that the stages follow each other without gaps, and fill the operation. */
static void check_stages(void)
{
	struct mmc_trace_event operation = only(MMC_TRACE_OPERATION, 0);
	uint64_t at_ns = operation.begin_ns;
	uint32_t stage = 0;

	for (uint32_t i = 0; i < nevents; i++) {
		if (events[i].kind != MMC_TRACE_STAGE)
			continue;
		CHECK_EQ(events[i].begin_ns, at_ns);
		CHECK_EQ(events[i].epoch, operation.epoch);
		CHECK(events[i].detail > stage);
		at_ns = events[i].end_ns;
		stage = events[i].detail;
	}
	CHECK_EQ(at_ns, operation.end_ns);
}

/* Lets a rank have nothing to do for a time, as a caller that waits would. */
static void idle(uint32_t r, uint64_t time_ns)
{
	mmc_tracing_await(requests[r]);
	hub_now_ns += time_ns;
	mmc_tracing_resume(requests[r]);
}

/* Ranks 0 and 1 wait for rank 2, which enters late: one wait, in the entry. */
static void a_late_rank(void)
{
	struct mmc_trace_event event;

	open_traced((struct hub_options){ .clock_ns = MMC_S_NS });
	requests[0] = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	requests[1] = hub_gather(1, recv[1], HUB_CHUNK_BYTES);
	hub_settle();
	idle(0, 3 * MMC_MS_NS);
	idle(0, 4 * MMC_MS_NS);
	requests[2] = hub_gather(2, recv[2], HUB_CHUNK_BYTES);
	complete_all();
	read_events(0);
	check_stages();
	event = only(MMC_TRACE_WAIT, 0);
	CHECK_EQ(event.detail, MMC_TRACE_ENTRY);
	CHECK_EQ(event.peer, 2);
	CHECK_EQ(event.epoch, 1);
	CHECK_EQ(event.amount, 7 * MMC_MS_NS);
	CHECK_EQ(event.count, 2);
	CHECK_EQ(event.begin_ns, MMC_S_NS);
	CHECK_EQ(event.end_ns, MMC_S_NS + 7 * MMC_MS_NS);
	event = only(MMC_TRACE_STAGE, MMC_TRACE_ENTRY);
	CHECK(event.end_ns >= MMC_S_NS + 7 * MMC_MS_NS);
	event = only(MMC_TRACE_OPERATION, MMC_ALLGATHER);
	CHECK_EQ(event.amount, HUB_CHUNK_BYTES);
	CHECK_EQ(event.peer, UINT32_MAX);
	CHECK_EQ(event.count, 0);
	/* That nobody came for a long time is a wait for entry, and no stall. */
	CHECK_EQ(only(MMC_TRACE_STALL, 0).kind, 0);
	read_events(2);
	CHECK_EQ(only(MMC_TRACE_WAIT, 0).kind, 0);
	close_traced();
}

/* Loses what rank 1 multicasts to rank 0. */
static bool loses_chunks(uint32_t source, uint32_t to, const uint8_t *bytes)
{
	struct mmc_header header;

	CHECK_EQ(mmc_header_decode(&header, bytes, MMC_HEADER_BYTES,
				   MMC_CHECKSUM_OFF),
		 0);
	return source == 1 && to == 0 &&
	       (header.index & (MMC_INDEX_CONTROL | MMC_INDEX_REPAIR)) == 0;
}

/* A lost chunk: a stall of the rank that lacks it, and a repair by the other one. */
static void a_lost_chunk(void)
{
	struct mmc_trace_event event;

	open_traced((struct hub_options){ .clock_ns = MMC_S_NS });
	hub_loses = loses_chunks;
	for (uint32_t r = 0; r < NRANKS; r++)
		requests[r] = hub_gather(r, recv[r], HUB_CHUNK_BYTES);
	hub_settle();
	idle(0, 2 * MMC_MS_NS);
	complete_all();
	read_events(0);
	check_stages();
	event = only(MMC_TRACE_STALL, 0);
	CHECK_EQ(event.detail, MMC_TRACE_MULTICAST);
	CHECK_EQ(event.peer, 1);
	CHECK_EQ(event.amount, 2 * MMC_MS_NS);
	CHECK_EQ(event.count, 1);
	CHECK_EQ(only(MMC_TRACE_WAIT, 0).peer, 1);
	CHECK(only(MMC_TRACE_STAGE, MMC_TRACE_REPAIR).kind != 0);
	CHECK_EQ(only(MMC_TRACE_LOST, 0).count, 1);
	CHECK_EQ(only(MMC_TRACE_REPAIRED, 0).count, 1);
	mmc_tracing_note_repairs(hub[1].engine);
	read_events(1);
	CHECK_EQ(only(MMC_TRACE_RESENT, 0).count, 1);
	/* What was noted once is not noted again. */
	mmc_tracing_note_repairs(hub[1].engine);
	read_events(1);
	CHECK_EQ(only(MMC_TRACE_RESENT, 0).count, 1);
	close_traced();
}

/* A caller of an engine with threads waits in vain, and the trace says for whom. */
static void a_failure(void)
{
	struct mmc_trace_event event;

	open_traced((struct hub_options){
		.nplayed = 2,
		.threaded = true,
		.timeout_ns = 50 * MMC_MS_NS,
	});
	requests[0] = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	CHECK_EQ(mmc_request_wait(requests[0], LONG_NS), -MMC_ENOANSWER);
	mmc_request_free(requests[0]);
	read_events(0);
	check_stages();
	event = only(MMC_TRACE_OPERATION, 0);
	CHECK_EQ(event.count, MMC_ENOANSWER);
	CHECK_EQ(event.peer, 2);
	event = only(MMC_TRACE_WAIT, 0);
	CHECK_EQ(event.peer, 2);
	CHECK_EQ(event.detail, MMC_TRACE_ENTRY);
	CHECK(event.count > 0);
	CHECK(event.amount <= event.end_ns - event.begin_ns);
	CHECK_EQ(hub[0].engine->ntraced, 1);
	close_traced();
}

/* A stream that nobody traces adds nothing, and one that is closed is forgotten. */
static void not_traced(void)
{
	open_traced((struct hub_options){ .clock_ns = MMC_S_NS });
	mmc_tracing_end(hub[2].stream);
	CHECK_EQ(hub[2].engine->ntraced, 0);
	for (uint32_t r = 0; r < NRANKS; r++)
		requests[r] = hub_gather(r, recv[r], HUB_CHUNK_BYTES);
	complete_all();
	mmc_tracing_note_repairs(hub[2].engine);
	read_events(2);
	CHECK_EQ(nevents, 0);
	close_traced();
}

CHECK_MAIN(CHECK_TEST(a_late_rank), CHECK_TEST(a_lost_chunk),
	   CHECK_TEST(a_failure), CHECK_TEST(not_traced))
