/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a stream: its options, its place in the team, its leave and its failure. */
#include "hub.h"
#include "support/prng.h"

#define NSTREAMS 40

static const struct hub_options pair = { .nranks = 2 };
static const struct hub_options alone = { .nranks = 2, .nplayed = 1 };

static uint8_t recv[2][2 * HUB_CHUNK_BYTES];

static void refused(uint32_t repair, uint64_t timeout_ns)
{
	const struct mmc_stream_options options = {
		.channel = HUB_CHANNEL << 1,
		.repair = repair,
		.timeout_ns = timeout_ns,
	};
	struct mmc_stream *stream;

	CHECK_EQ(mmc_stream_create(hub[0].team, &options, &stream),
		 -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "options") != NULL);
	CHECK_EQ(hub[0].team->nopen, 1);
}

static void wrong_options_are_refused(void)
{
	hub_open(&alone);
	refused(MMC_REPAIR_READ + 1, MMC_S_NS);
	refused(UINT32_MAX, MMC_S_NS);
	refused(MMC_REPAIR_NAK, 0);
	hub_close();
}

/* Checks that the team has `nopen` streams, in order of channel, each at its index. */
static void check_order(const struct mmc_team *team, uint32_t nopen)
{
	CHECK_EQ(team->nopen, nopen);
	for (uint32_t i = 0; i < team->nopen; i++) {
		const struct mmc_stream *stream = team->by_channel[i];

		CHECK(team->streams[stream->index] == stream);
		CHECK(i == 0 ||
		      mmc_epochs_channel(&team->by_channel[i - 1]->epochs) <
			      mmc_epochs_channel(&stream->epochs));
	}
}

/* Streams that open and close in any order stay in order of channel. */
static void streams_in_order_of_channel(void)
{
	struct mmc_stream *streams[NSTREAMS] = { NULL };
	struct mmc_prng prng = { check_seed() };
	uint32_t nopen = 1;

	hub_open(&alone);
	for (int step = 0; step < 1000; step++) {
		uint32_t i = (uint32_t)mmc_prng_below(&prng, NSTREAMS);

		if (streams[i] == NULL) {
			hub_open_stream(0, (UINT64_C(1000) + i * 37 % 41) << 16,
					&streams[i]);
			nopen++;
		} else {
			mmc_stream_close(streams[i]);
			streams[i] = NULL;
			nopen--;
		}
		check_order(hub[0].team, nopen);
		/* Places of closed streams are filled again. */
		CHECK(hub[0].team->nstreams <= NSTREAMS + 1);
	}
	for (uint32_t i = 0; i < NSTREAMS; i++)
		if (streams[i] != NULL)
			mmc_stream_close(streams[i]);
	hub_close();
}

/* The driver learns the shortest timeout of the team's open streams. */
static void the_shortest_timeout(void)
{
	struct mmc_stream_options options = { .channel = HUB_CHANNEL << 1 };
	struct mmc_stream *shorter;
	struct mmc_stream *longer;

	hub_open(&alone);
	CHECK_EQ(hub[0].endpoint.timeout_ns, 10 * MMC_S_NS);
	options.timeout_ns = MMC_S_NS;
	CHECK_EQ(mmc_stream_create(hub[0].team, &options, &shorter), 0);
	CHECK_EQ(hub[0].endpoint.timeout_ns, MMC_S_NS);
	options.channel = HUB_CHANNEL << 2;
	options.timeout_ns = 2 * MMC_S_NS;
	CHECK_EQ(mmc_stream_create(hub[0].team, &options, &longer), 0);
	CHECK_EQ(hub[0].endpoint.timeout_ns, MMC_S_NS);
	mmc_stream_close(shorter);
	CHECK_EQ(hub[0].endpoint.timeout_ns, 2 * MMC_S_NS);
	mmc_stream_close(longer);
	CHECK_EQ(hub[0].endpoint.timeout_ns, 10 * MMC_S_NS);
	hub_close();
}

/* A rank that leaves fails the operation in which another waits for it, and no other. */
static void a_rank_that_leaves(void)
{
	struct mmc_request *requests[2];
	struct mmc_failure failure;

	hub_open(&pair);
	for (uint32_t r = 0; r < 2; r++)
		requests[r] = hub_gather(r, recv[r], HUB_CHUNK_BYTES);
	mmc_stream_leave(hub[1].stream);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		hub_check(recv[r], HUB_CHUNK_BYTES);
		mmc_request_free(requests[r]);
	}
	mmc_stream_failure(hub[0].stream, &failure);
	CHECK_EQ(failure.error, 0);
	requests[0] = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	CHECK(hub_complete(requests[0], MMC_S_NS));
	CHECK_EQ(mmc_request_wait(requests[0], 0), -MMC_ELEFT);
	mmc_stream_failure(hub[0].stream, &failure);
	CHECK_EQ(failure.error, -MMC_ELEFT);
	CHECK_EQ(failure.epoch, 2);
	CHECK_EQ(failure.culprit, 1);
	mmc_request_free(requests[0]);
	hub_close();
}

/* Checks that both ranks know of a failure of rank 1 in the first operation. */
static void check_poisoned(int error)
{
	for (uint32_t r = 0; r < 2; r++) {
		struct mmc_failure failure;

		mmc_stream_failure(hub[r].stream, &failure);
		CHECK_EQ(failure.error, error);
		CHECK_EQ(failure.culprit, 1);
	}
}

/* A stream that fails on one rank fails on the others, in flight there or here. */
static void a_rank_that_fails(void)
{
	for (uint32_t nstarted = 1; nstarted <= 2; nstarted++) {
		struct mmc_request *requests[2];

		hub_open(&pair);
		for (uint32_t r = 0; r < nstarted; r++)
			requests[r] = hub_gather(r, recv[r], HUB_CHUNK_BYTES);
		mmc_stream_fail(hub[1].stream, -MMC_EGONE);
		mmc_stream_fail(hub[1].stream, -MMC_ELATE);
		for (uint32_t r = 0; r < nstarted; r++) {
			CHECK(hub_complete(requests[r], MMC_S_NS));
			CHECK_EQ(mmc_request_wait(requests[r], 0), -MMC_EGONE);
			mmc_request_free(requests[r]);
		}
		check_poisoned(-MMC_EGONE);
		hub_close();
	}
}

/* Closing gives up what is in flight: nothing is written to its buffer any more. */
static void a_close_with_an_open_operation(void)
{
	static uint8_t before[sizeof(recv[0])];
	struct mmc_request *request;

	hub_open(&pair);
	request = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	memcpy(before, recv[0], sizeof(before));
	mmc_stream_close(hub[0].stream);
	hub[0].stream = NULL;
	request = hub_gather(1, recv[1], HUB_CHUNK_BYTES);
	hub_settle();
	CHECK_BYTES(recv[0], before, sizeof(before));
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

static void check_reason(uint32_t epoch, uint32_t rank, uint32_t sender)
{
	struct mmc_unicast_reason reason;

	memset(&reason, 0xff, sizeof(reason));
	mmc_stream_unicast_reason(hub[0].stream, &reason);
	CHECK_EQ(mmc_stream_unicast_epoch(hub[0].stream), epoch);
	CHECK_EQ(reason.epoch, epoch);
	CHECK_EQ(reason.rank, rank);
	CHECK_EQ(reason.sender, sender);
}

/* A stream says which rank does not hear whom, once it has given up multicast. */
static void why_there_is_no_multicast(void)
{
	hub_open(&alone);
	check_reason(0, 0, 0);
	hub[0].stream->epochs.deaf = mmc_terms_deaf(1, 0);
	hub[0].stream->epochs.unicast_epoch = 6;
	check_reason(6, 1, 0);
	hub[0].stream->epochs.deaf = mmc_terms_deaf(0, MMC_PEER_ALL);
	check_reason(6, 0, UINT32_MAX);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(wrong_options_are_refused),
	   CHECK_TEST(streams_in_order_of_channel),
	   CHECK_TEST(the_shortest_timeout), CHECK_TEST(a_rank_that_leaves),
	   CHECK_TEST(a_rank_that_fails),
	   CHECK_TEST(a_close_with_an_open_operation),
	   CHECK_TEST(why_there_is_no_multicast))
