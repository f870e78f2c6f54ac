/* SPDX-License-Identifier: BSD-3-Clause */
/* Users read the counters of streams and teams by name, in the table's order. */
#include "hub.h"

static uint8_t recv[2][2 * HUB_CHUNK_BYTES];

static void every_counter_has_its_name(void)
{
	static const char *const names[] = {
#define NAME(counter, name) [MMC_COUNT_##counter] = name,
		MMC_COUNTER_TABLE(NAME)
#undef NAME
	};

	CHECK_EQ(mmc_counter_count(), MMC_COUNTER_COUNT);
	for (uint32_t c = 0; c < MMC_COUNTER_COUNT; c++) {
		CHECK(strcmp(mmc_counter_name(c), names[c]) == 0);
		for (uint32_t other = 0; other < c; other++)
			CHECK(strcmp(names[c], names[other]) != 0);
	}
	CHECK(strcmp(mmc_counter_name(MMC_COUNTER_COUNT), "") == 0);
}

/* Each stream counts its own operations, and the team none of them. */
static void streams_count_apart(void)
{
	uint64_t values[MMC_COUNTER_COUNT];
	struct mmc_request *requests[2];
	struct mmc_stream *idle;

	hub_open(&(struct hub_options){ .nranks = 2 });
	hub_open_stream(0, HUB_CHANNEL << 1, &idle);
	for (uint32_t r = 0; r < 2; r++)
		requests[r] = hub_gather(r, recv[r], HUB_CHUNK_BYTES);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		mmc_request_free(requests[r]);
	}
	mmc_stream_counters(hub[0].stream, values);
	CHECK_EQ(values[MMC_COUNT_EPOCHS], 1);
	CHECK_EQ(values[MMC_COUNT_TX_MULTICAST_DATAGRAMS], 1);
	mmc_stream_counters(idle, values);
	CHECK_EQ(values[MMC_COUNT_EPOCHS], 0);
	CHECK_EQ(values[MMC_COUNT_TX_MULTICAST_DATAGRAMS], 0);
	mmc_team_counters(hub[0].team, values);
	CHECK_EQ(values[MMC_COUNT_EPOCHS], 0);
	mmc_stream_close(idle);
	hub_close();
}

/* The team's counters include those that the driver keeps in the endpoint. */
static void the_drivers_counters(void)
{
	uint64_t values[MMC_COUNTER_COUNT];

	hub_open(&(struct hub_options){ .nranks = 2 });
	hub[0].endpoint.evacuated = 3;
	hub[0].endpoint.reconnects = 5;
	hub[0].endpoint.rejoins = 7;
	hub[0].endpoint.tx_calls = 11;
	hub[0].endpoint.rx_calls = 13;
	mmc_team_counters(hub[0].team, values);
	CHECK_EQ(values[MMC_COUNT_EVACUATED_CHUNKS], 3);
	CHECK_EQ(values[MMC_COUNT_RECONNECTS], 5);
	CHECK_EQ(values[MMC_COUNT_REJOINS], 7);
	CHECK_EQ(values[MMC_COUNT_TX_CALLS], 11);
	CHECK_EQ(values[MMC_COUNT_RX_CALLS], 13);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(every_counter_has_its_name),
	   CHECK_TEST(streams_count_apart), CHECK_TEST(the_drivers_counters))
