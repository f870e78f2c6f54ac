/* SPDX-License-Identifier: BSD-3-Clause */
/* When a connection or the device breaks for good, all streams of the team fail. */
#include "engine/breakdown.h"

#include "hub.h"
#include "support/error.h"

static const struct hub_options alone = { .nranks = 3, .nplayed = 2 };

static uint8_t recv[2][3 * HUB_CHUNK_BYTES];

/* Reports to the engine that something is broken, as a driver does. */
static void report(uint32_t peer, int error, const char *why)
{
	const struct mmc_event event = {
		.kind = MMC_EVENT_BROKEN,
		.source = peer,
		.error = error,
	};

	mmc_error_set("%s", why);
	hub_queue(0, event, 0);
	hub_settle();
}

/* Checks that a request has failed with `error`, and names `culprit` and the reason. */
static void check_failed_by(struct mmc_request *request, int error,
			    uint32_t culprit)
{
	struct mmc_failure failure;

	mmc_error_set("something else");
	CHECK_EQ(mmc_request_wait(request, 0), error);
	CHECK(strcmp(mmc_last_error(), "cable cut") == 0);
	mmc_request_failure(request, &failure);
	CHECK_EQ(failure.error, error);
	CHECK_EQ(failure.culprit, culprit);
	CHECK_EQ(failure.missing_chunks, 2);
}

static void every_stream_fails(void)
{
	struct mmc_request *requests[2];
	struct mmc_stream *first;

	hub_open(&alone);
	requests[0] = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	first = hub[0].stream;
	hub_open_stream(0, HUB_CHANNEL << 1, &hub[0].stream);
	requests[1] = hub_gather(0, recv[1], HUB_CHUNK_BYTES);
	report(2, -MMC_EGONE, "cable cut");
	/* A later breakdown changes neither the error nor its reason. */
	report(1, -MMC_EIO, "power lost");
	for (int i = 0; i < 2; i++) {
		check_failed_by(requests[i], -MMC_EGONE, 2);
		mmc_request_free(requests[i]);
	}
	mmc_stream_close(first);
	hub_close();
}

/* A broken device is blamed on this rank; an unknown error becomes MMC_EIO. */
static void the_device_itself(void)
{
	struct mmc_request *request;

	hub_open(&alone);
	request = hub_gather(0, recv[0], HUB_CHUNK_BYTES);
	report(MMC_PEER_NONE, -1000000, "cable cut");
	check_failed_by(request, -MMC_EIO, 0);
	mmc_request_free(request);
	hub_close();
}

static void no_stream_opens_any_more(void)
{
	const struct mmc_stream_options options = {
		.channel = HUB_CHANNEL << 1,
		.timeout_ns = MMC_S_NS,
	};
	struct mmc_stream *stream;

	hub_open(&alone);
	report(1, -MMC_EGONE, "cable cut");
	mmc_error_set("something else");
	CHECK_EQ(mmc_stream_create(hub[0].team, &options, &stream), -MMC_EGONE);
	CHECK(strcmp(mmc_last_error(), "cable cut") == 0);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(every_stream_fails), CHECK_TEST(the_device_itself),
	   CHECK_TEST(no_stream_opens_any_more))
