/* SPDX-License-Identifier: BSD-3-Clause */
/* What is found in the engine's state: streams by channel, places of chunks by layout. */
#include "engine/state.h"

#include "hub.h"
#include "support/prng.h"

#define NSTREAMS 9
#define BLOCK_CHUNKS_MAX 4

static const struct hub_options alone = { .nranks = 3, .nplayed = 2 };

static uint8_t recv[8 * BLOCK_CHUNKS_MAX * HUB_CHUNK_BYTES];

/* Returns the index that a search of every stream finds for a channel. */
static uint32_t brute_index(const struct mmc_team *team, uint64_t channel)
{
	uint32_t i = 0;

	while (i < team->nopen &&
	       mmc_epochs_channel(&team->by_channel[i]->epochs) < channel)
		i++;
	return i;
}

static void streams_by_channel(void)
{
	struct mmc_stream *streams[NSTREAMS];

	hub_open(&alone);
	for (uint64_t i = 0; i < NSTREAMS; i++) {
		hub_open_stream(0, (3 + i * i % 31) << 16, &streams[i]);
		for (uint64_t c = 0; c < UINT64_C(36) << 16; c += 1 << 14)
			CHECK_EQ(mmc_team_channel_index(hub[0].team, c),
				 brute_index(hub[0].team, c));
		CHECK_EQ(mmc_team_channel_index(hub[0].team, UINT64_MAX),
			 hub[0].team->nopen);
	}
	for (uint32_t i = 0; i < NSTREAMS; i++)
		mmc_stream_close(streams[i]);
	hub_close();
}

/*
 * Starts an Allgatherv of 3 ranks with random blocks, each `gap_bytes` after the last,
 * and checks the place of each chunk against one that is counted byte by byte.
 */
static void check_places(struct mmc_prng *prng, uint64_t gap_bytes)
{
	uint64_t blocks_bytes[3];
	uint64_t offsets_bytes[3];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = blocks_bytes,
		.offsets_bytes = gap_bytes > 0 ? offsets_bytes : NULL,
		.recv = recv,
	};
	struct mmc_request *request;
	uint64_t at = 0;
	uint32_t chunk = 0;

	for (uint32_t r = 0; r < 3; r++) {
		blocks_bytes[r] = mmc_prng_below(prng, BLOCK_CHUNKS_MAX *
							       HUB_CHUNK_BYTES);
		offsets_bytes[r] = at;
		at += blocks_bytes[r] + gap_bytes;
	}
	CHECK_EQ(mmc_start(hub[0].stream, &operation, 0, &request), MMC_EAGAIN);
	CHECK(mmc_stream_request(hub[0].stream, request->op) == request);
	for (uint32_t r = 0; r < 3; r++)
		for (uint64_t b = 0; b < blocks_bytes[r]; b += HUB_CHUNK_BYTES)
			CHECK(mmc_request_address(request, chunk++) ==
			      recv + offsets_bytes[r] + b);
	CHECK_EQ(mmc_op_layout(request->op)->nchunks, chunk);
	mmc_stream_close(hub[0].stream);
	hub_open_stream(0, HUB_CHANNEL, &hub[0].stream);
}

static void places_of_chunks(void)
{
	struct mmc_prng prng = { check_seed() };

	hub_open(&alone);
	for (int i = 0; i < 100; i++)
		check_places(&prng, mmc_prng_below(&prng, 3) * 500);
	hub_close();
}

/* The responder looks after a team that is connected, unless the user asked it not to. */
static void attended_teams(void)
{
	struct hub_options options = alone;

	hub_open(&options);
	CHECK(mmc_team_is_attended(hub[0].team));
	hub_close();
	options.unattended = true;
	hub_open(&options);
	CHECK(!mmc_team_is_attended(hub[0].team));
	hub_close();
}

/* A team's time is that of its endpoint's clock. */
static void the_endpoints_clock(void)
{
	struct hub_options options = alone;

	options.clock_ns = 12345;
	hub_open(&options);
	CHECK_EQ(mmc_team_now_ns(hub[0].team), 12345);
	hub_now_ns += 55;
	CHECK_EQ(mmc_team_now_ns(hub[0].team), 12400);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(streams_by_channel), CHECK_TEST(places_of_chunks),
	   CHECK_TEST(attended_teams), CHECK_TEST(the_endpoints_clock))
