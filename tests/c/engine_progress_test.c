/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of progress: what is due, what events do, and what a failure to send does. */
#include "engine/progress.h"

#include "engine/arrival.h"
#include "hub.h"

#define BLOCK_BYTES 5000
#define BLOCK_CHUNKS (BLOCK_BYTES / HUB_CHUNK_BYTES)

static uint8_t recv[3][3 * BLOCK_BYTES];

/* An engine without operations waits for events alone. */
static void idle_for_ever(void)
{
	hub_open(&(struct hub_options){ .nranks = 3 });
	CHECK_EQ(hub_settle(), MMC_NEVER_NS);
	CHECK_EQ(mmc_engine_idle_ns(hub[0].engine), MMC_NEVER_NS);
	CHECK_EQ(mmc_engine_coalescing_ns(hub[0].engine), 0);
	CHECK(!mmc_engine_has_pending(hub[0].engine));
	CHECK(!mmc_engine_progress(hub[0].engine));
	hub_close();
}

/* Operations complete; while a rank waits, it has a deadline of its own. */
static void until_all_is_done(void)
{
	struct mmc_request *requests[3];

	hub_open(&(struct hub_options){ .nranks = 3, .clock_ns = MMC_S_NS });
	requests[0] = hub_gather(0, recv[0], BLOCK_BYTES);
	CHECK(mmc_engine_has_pending(hub[0].engine));
	CHECK_EQ(mmc_engine_idle_ns(hub[0].engine), 0);
	CHECK(hub_settle() > hub_now_ns);
	CHECK(mmc_team_idle_ns(hub[0].team) > 0);
	CHECK(mmc_team_idle_ns(hub[0].team) < MMC_S_NS);
	for (uint32_t r = 1; r < 3; r++)
		requests[r] = hub_gather(r, recv[r], BLOCK_BYTES);
	for (uint32_t r = 0; r < 3; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		CHECK_EQ(mmc_request_wait(requests[r], 0), 0);
		hub_check(recv[r], BLOCK_BYTES);
		mmc_request_free(requests[r]);
	}
	hub_pass(hub_now_ns + MMC_S_NS);
	CHECK(!mmc_engine_has_pending(hub[0].engine));
	hub_close();
}

/* If a datagram cannot be sent, the team breaks at once, without a timeout. */
static void sending_fails(void)
{
	struct mmc_request *request;

	hub_open(&(struct hub_options){ .nranks = 3, .nplayed = 2 });
	hub[0].send_rv = -MMC_EIO;
	request = hub_gather(0, recv[0], BLOCK_BYTES);
	hub_settle();
	CHECK_EQ(mmc_request_wait(request, 0), -MMC_EIO);
	CHECK_EQ(hub_now_ns, 0);
	mmc_request_free(request);
	hub_close();
}

/* A silent rank is inquired about; what the transport finds out counts at once. */
static void findings_of_the_transport(void)
{
	const struct mmc_event gone = { .kind = MMC_EVENT_GONE, .source = 1 };
	struct mmc_request *request;
	struct mmc_failure failure;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	request = hub_gather(0, recv[0], BLOCK_BYTES);
	while (hub[0].ninquiries == 0 && hub_now_ns < 9 * MMC_S_NS)
		hub_pass(hub_now_ns + 10 * MMC_MS_NS);
	CHECK(hub[0].ninquiries > 0);
	CHECK_EQ(mmc_request_wait(request, 0), MMC_EAGAIN);
	hub_queue(0, gone, 0);
	hub_settle();
	CHECK_EQ(mmc_request_wait(request, 0), -MMC_EGONE);
	mmc_request_failure(request, &failure);
	CHECK_EQ(failure.culprit, 1);
	mmc_request_free(request);
	hub_close();
}

/* While the transport vouches for a rank, TIMEOUT does not end the operation. */
static void a_rank_that_exists_is_waited_for(void)
{
	const struct mmc_event alive = { .kind = MMC_EVENT_ALIVE, .source = 1 };
	struct mmc_request *request;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	request = hub_gather(0, recv[0], BLOCK_BYTES);
	while (hub_now_ns < 30 * MMC_S_NS) {
		hub_queue(0, alive, 0);
		hub_pass(hub_now_ns + 100 * MMC_MS_NS);
	}
	CHECK_EQ(mmc_request_wait(request, 0), MMC_EAGAIN);
	hub_pass(hub_now_ns + 30 * MMC_S_NS);
	CHECK_EQ(mmc_request_wait(request, 0), -MMC_ENOANSWER);
	mmc_request_free(request);
	hub_close();
}

/* Endpoints are armed before a sleep, which a waiting event forbids. */
static void arming(void)
{
	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.unattended = true,
	});
	CHECK(!mmc_engine_rearm(hub[0].engine, true));
	hub[0].arms = true;
	CHECK(mmc_engine_rearm(hub[0].engine, true));
	CHECK(!mmc_engine_rearm(hub[0].engine, false));
	hub_close();
}

/* Opens a driver that keeps events, and tells of one in each poll. */
static struct mmc_request *open_keeping(void)
{
	struct mmc_request *request;

	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.eager_bytes = 1 << 20,
	});
	request = hub_gather(0, recv[0], BLOCK_BYTES);
	hub_settle();
	hub[0].endpoint.kept_events = MMC_EVENTS_MAX;
	hub[0].poll_max = 1;
	return request;
}

/* Ends what open_keeping() has begun. */
static void close_keeping(struct mmc_request *request)
{
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* Queues the events that chunks of rank 1 arrive, one by one, and counts the rounds. */
static uint32_t rounds_of_arrivals(struct mmc_request *request,
				   uint32_t kept_events)
{
	struct mmc_event event = {
		.kind = MMC_EVENT_ARRIVED,
		.source = 1,
		.cookie = mmc_arrival_cookie(request),
		.count = 1,
	};
	uint32_t nrounds = 0;

	hub[0].endpoint.kept_events = kept_events;
	for (uint32_t i = 0; i < BLOCK_CHUNKS; i++) {
		event.first = BLOCK_CHUNKS + i;
		hub_queue(0, event, HUB_CHUNK_BYTES);
	}
	while (mmc_op_missing_chunks(request->op) > 0 && nrounds < 100) {
		mmc_engine_progress(hub[0].engine);
		nrounds++;
	}
	return nrounds;
}

/*
 * A driver that tells of one event at a time is polled until it has told all, if it keeps
 * them. Events of consecutive chunks become one.
 */
static void events_are_gathered(void)
{
	static const uint32_t kept[] = { 0, 1, 64 };
	static const uint32_t nrounds[] = { BLOCK_CHUNKS, BLOCK_CHUNKS, 1 };

	for (uint32_t i = 0; i < 3; i++) {
		struct mmc_request *request = open_keeping();

		CHECK_EQ(rounds_of_arrivals(request, kept[i]), nrounds[i]);
		CHECK_EQ(hub_count(0, MMC_COUNT_ZERO_COPY_CHUNKS),
			 BLOCK_CHUNKS);
		close_keeping(request);
	}
}

static bool is_present(const struct mmc_request *request, uint32_t chunk)
{
	return mmc_bitmap_test(&request->op->present, chunk);
}

/*
 * Has the first chunk of rank 1 arrive, and then another, whose event differs. Checks which
 * of the first three chunks are here.
 */
static void check_apart(uint32_t nbytes, const struct mmc_event *other,
			uint32_t other_bytes, const bool here[3])
{
	struct mmc_request *request = open_keeping();
	struct mmc_event event = {
		.kind = MMC_EVENT_ARRIVED,
		.source = 1,
		.cookie = mmc_arrival_cookie(request),
		.first = BLOCK_CHUNKS,
		.count = 1,
	};

	hub_queue(0, event, nbytes);
	event.source += other->source;
	event.cookie += other->cookie;
	event.first += other->first;
	hub_queue(0, event, other_bytes);
	mmc_engine_progress(hub[0].engine);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(is_present(request, BLOCK_CHUNKS + i), here[i]);
	close_keeping(request);
}

/* Events that do not go on stay apart: what is wrong with one is not with the other. */
static void other_events_stay_apart(void)
{
	static const struct mmc_event next = { .first = 1 };
	static const struct mmc_event far = { .first = 2 };
	static const struct mmc_event stranger = { .first = 1, .source = 1 };
	static const struct mmc_event later = { .first = 1, .cookie = 1 };
	const uint32_t full = HUB_CHUNK_BYTES;

	check_apart(full, &next, full, (bool[]){ true, true, false });
	check_apart(full, &far, full, (bool[]){ true, false, true });
	check_apart(full, &stranger, full, (bool[]){ true, false, false });
	check_apart(full, &later, full, (bool[]){ true, false, false });
	check_apart(full, &next, full - 1, (bool[]){ true, false, false });
	check_apart(full - 1, &next, full, (bool[]){ false, true, false });
}

static uint64_t cookies[BLOCK_CHUNKS];
static uint32_t ncookies;
static uint32_t ncalls;

/* Notes placements, which complete later. */
static int place_later(struct mmc_endpoint *endpoint, void *to,
		       const struct mmc_event *datagrams, uint32_t ndatagrams,
		       uint32_t head_bytes, uint64_t cookie)
{
	(void)endpoint;
	(void)to;
	ncalls++;
	for (uint32_t i = 0; i < ndatagrams; i++) {
		CHECK_EQ(datagrams[i].nbytes, head_bytes + HUB_CHUNK_BYTES);
		cookies[ncookies++] = cookie + i;
	}
	return -MMC_EAGAIN;
}

/* Placements complete in any order; those of consecutive chunks become one event. */
static void placements_are_gathered(void)
{
	static const uint32_t order[] = { 0, 2, 3, 1 };
	struct mmc_driver driver = hub_driver;
	struct mmc_request *request = open_keeping();
	uint8_t datagram[MMC_HEADER_BYTES + HUB_CHUNK_BYTES] = { 0 };

	ncookies = 0;
	ncalls = 0;
	driver.place = place_later;
	hub[0].endpoint.driver = &driver;
	for (uint32_t i = 0; i < 4; i++) {
		const struct mmc_header header = {
			.channel = HUB_CHANNEL,
			.epoch = 1,
			.index = BLOCK_CHUNKS + i,
		};

		mmc_header_encode(datagram, &header, sizeof(datagram),
				  MMC_CHECKSUM_OFF);
		hub_deliver(1, 0, datagram, sizeof(datagram));
	}
	mmc_engine_progress(hub[0].engine);
	CHECK_EQ(ncalls, 1);
	CHECK_EQ(ncookies, 4);
	CHECK_EQ(mmc_op_missing_chunks(request->op), BLOCK_CHUNKS);
	/* An event of another kind, whose unused fields would fit. */
	hub_queue(0,
		  (struct mmc_event){ .kind = MMC_EVENT_ALIVE,
				      .source = 1,
				      .cookie = cookies[0] - 1,
				      .count = 1 },
		  0);
	for (uint32_t i = 0; i < 4; i++) {
		const struct mmc_event placed = { .kind = MMC_EVENT_PLACED,
						  .cookie = cookies[order[i]],
						  .count = 1 };

		hub_queue(0, placed, 0);
		if (i != 2)
			continue;
		mmc_engine_progress(hub[0].engine);
		for (uint32_t c = 0; c < BLOCK_CHUNKS; c++)
			CHECK_EQ(is_present(request, BLOCK_CHUNKS + c),
				 c == 0 || c == 2 || c == 3);
	}
	mmc_engine_progress(hub[0].engine);
	CHECK_EQ(mmc_op_missing_chunks(request->op), BLOCK_CHUNKS - 4);
	hub[0].endpoint.driver = &hub_driver;
	close_keeping(request);
}

CHECK_MAIN(CHECK_TEST(idle_for_ever), CHECK_TEST(events_are_gathered),
	   CHECK_TEST(other_events_stay_apart),
	   CHECK_TEST(placements_are_gathered), CHECK_TEST(until_all_is_done),
	   CHECK_TEST(sending_fails), CHECK_TEST(findings_of_the_transport),
	   CHECK_TEST(a_rank_that_exists_is_waited_for), CHECK_TEST(arming))
