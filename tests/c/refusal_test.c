/* SPDX-License-Identifier: BSD-3-Clause */
/* Refused datagrams are counted and accounted, guard the endpoint, and announce nothing. */
#include "engine/refusal.h"

#include "engine/progress.h"
#include "hub.h"

/* The test plays rank 1; operations are not eager. */
static const struct hub_options options = {
	.nranks = 2,
	.nplayed = 1,
	.checksum = MMC_CHECKSUM_HEADER,
};

static uint8_t junk[100];

static uint64_t team_count(enum mmc_counter counter)
{
	return hub[0].team->counters.value[counter];
}

/* Delivers `count` datagrams of a stranger, `nbytes` long. */
static void flood(uint32_t count, uint32_t nbytes)
{
	for (uint32_t i = 0; i < count; i++) {
		hub_deliver(MMC_PEER_UNKNOWN, 0, junk, nbytes);
		if (hub[0].nqueued == HUB_QUEUE_MAX)
			hub_settle();
	}
	hub_settle();
}

/* Each is counted once by its cause, with the rank or the address it comes from. */
static void each_is_counted_by_its_cause(void)
{
	static const enum mmc_counter counters[] = {
		MMC_COUNT_RX_FOREIGN_DATAGRAMS,
		MMC_COUNT_RX_MALFORMED_DATAGRAMS,
		MMC_COUNT_RX_CORRUPT_DATAGRAMS,
		MMC_COUNT_RX_FORGED_DATAGRAMS,
		MMC_COUNT_RX_REPLAYED_DATAGRAMS,
	};
	const struct mmc_event event = {
		.kind = MMC_EVENT_DATAGRAM,
		.source = 1,
		.nbytes = 100,
	};
	struct mmc_stranger strangers[MMC_STRANGERS_MAX];

	hub_open(&options);
	for (unsigned c = 0; c < MMC_REFUSAL_COUNT; c++) {
		for (unsigned i = 0; i <= c; i++)
			mmc_team_refuse(hub[0].team, &event,
					(enum mmc_refusal)c, 7);
		CHECK_EQ(team_count(counters[c]), c + 1);
	}
	flood(3, sizeof(junk));
	CHECK_EQ(mmc_team_strangers(hub[0].team, strangers), 2);
	CHECK_EQ(strangers[0].rank, 1);
	CHECK_EQ(strangers[0].first_ns, 7);
	for (unsigned c = 0; c < MMC_REFUSAL_COUNT; c++)
		CHECK_EQ(strangers[0].ndatagrams[c], c + 1);
	CHECK_EQ(strangers[1].rank, MMC_STRANGER_NO_RANK);
	CHECK_EQ(strangers[1].ndatagrams[MMC_REFUSED_FOREIGN], 3);
	CHECK_EQ(team_count(MMC_COUNT_RX_FILTERED_DATAGRAMS), 0);
	hub_close();
}

/*
 * A flood has the driver guard the endpoint. From then on a header alone stands for all
 * that the kernel has dropped, and the driver learns of each new stream's channel.
 */
static void a_flood_guards_the_endpoint(void)
{
	struct mmc_stream *another;

	hub_open(&options);
	flood(MMC_FLOOD_DATAGRAMS - 1, sizeof(junk));
	CHECK_EQ(hub[0].nguards, 0);
	flood(1, sizeof(junk));
	CHECK_EQ(hub[0].nguards, 1);
	CHECK_EQ(hub[0].nchannels, 2);
	CHECK_EQ(hub[0].channels[0], HUB_TEAM_CHANNEL & MMC_CHANNEL_MASK);
	CHECK_EQ(hub[0].channels[1], HUB_CHANNEL & MMC_CHANNEL_MASK);
	flood(10, MMC_HEADER_BYTES);
	flood(10, MMC_HEADER_BYTES + 1);
	CHECK_EQ(team_count(MMC_COUNT_RX_FOREIGN_DATAGRAMS),
		 MMC_FLOOD_DATAGRAMS + 20);
	CHECK_EQ(team_count(MMC_COUNT_RX_FILTERED_DATAGRAMS),
		 10 * (MMC_SAMPLED - 1));
	hub_open_stream(0, HUB_CHANNEL << 1, &another);
	CHECK_EQ(hub[0].nguards, 2);
	CHECK_EQ(hub[0].nchannels, 3);
	mmc_stream_close(another);
	CHECK_EQ(hub[0].nguards, 3);
	CHECK_EQ(hub[0].nchannels, 2);
	hub_close();
}

/* Datagrams that come slowly are no flood, however many. */
static void a_trickle_is_no_flood(void)
{
	hub_open(&options);
	for (uint32_t i = 0; i < 4; i++) {
		flood(MMC_FLOOD_DATAGRAMS / 2, sizeof(junk));
		hub_now_ns += MMC_FLOOD_NS + 1;
	}
	CHECK_EQ(hub[0].nguards, 0);
	hub_close();
}

/* With more channels than a driver takes, any channel is good. */
static void many_channels_are_not_told(void)
{
	struct mmc_stream *streams[MMC_GUARD_CHANNELS_MAX];

	hub_open(&options);
	flood(MMC_FLOOD_DATAGRAMS, sizeof(junk));
	for (uint64_t i = 0; i < MMC_GUARD_CHANNELS_MAX; i++)
		hub_open_stream(0, (i + 1) << 40, &streams[i]);
	CHECK_EQ(hub[0].nchannels, 0);
	for (uint32_t i = 0; i < MMC_GUARD_CHANNELS_MAX; i++)
		mmc_stream_close(streams[i]);
	CHECK_EQ(hub[0].nchannels, 2);
	hub_close();
}

/* Returns whether the stream would ask for lost chunks after a poll of one datagram. */
static bool is_backlog(uint32_t source)
{
	hub_deliver(source, 0, junk, sizeof(junk));
	hub[0].stream->needs_poll = true;
	mmc_engine_progress(hub[0].engine);
	return hub[0].stream->epochs.path.backlog;
}

/* Refused datagrams are no backlog, which would put off requests for lost chunks. */
static void they_are_no_backlog(void)
{
	const struct mmc_header header = {
		.channel = HUB_CHANNEL,
		.index = MMC_INDEX_CONTROL,
	};

	hub_open(&options);
	memset(junk, 0xff, sizeof(junk));
	CHECK(!is_backlog(MMC_PEER_UNKNOWN));
	CHECK(!is_backlog(1));
	memset(junk, 0, sizeof(junk));
	mmc_header_encode(junk, &header, MMC_HEADER_BYTES + MMC_MESSAGE_BYTES,
			  MMC_CHECKSUM_HEADER);
	hub_deliver(1, 0, junk, MMC_HEADER_BYTES + MMC_MESSAGE_BYTES);
	hub[0].stream->needs_poll = true;
	mmc_engine_progress(hub[0].engine);
	CHECK(hub[0].stream->epochs.path.backlog);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(each_is_counted_by_its_cause),
	   CHECK_TEST(a_flood_guards_the_endpoint),
	   CHECK_TEST(a_trickle_is_no_flood),
	   CHECK_TEST(many_channels_are_not_told),
	   CHECK_TEST(they_are_no_backlog))
