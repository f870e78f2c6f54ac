/* SPDX-License-Identifier: BSD-3-Clause */
/* A simulated link loses as many datagrams, and in as long periods, as it should. */
#include "drivers/sim/network.h"

#include "check.h"

#define TRIALS 60000u

struct counts {
	unsigned lost;
	unsigned periods;
};

static void send_one(struct mmc_network *network)
{
	const struct mmc_header header = { .index = 0 };
	uint8_t bytes[MMC_HEADER_BYTES];
	const struct mmc_parcel parcel = { .head = bytes,
					   .head_bytes = sizeof(bytes),
					   .peer = 1 };

	mmc_header_encode(bytes, &header, sizeof(bytes), MMC_CHECKSUM_OFF);
	mmc_network_send(network, 0, &parcel);
}

/* Sends one datagram; returns whether it is lost. */
static bool loses_one(struct mmc_network *network)
{
	struct mmc_heap_item event;
	bool arrived = false;

	send_one(network);
	while (mmc_network_next(network, &event)) {
		arrived = true;
		mmc_network_release(network, event.subject);
	}
	return !arrived;
}

static struct counts count(double loss, uint32_t period, uint64_t seed)
{
	const struct mmc_network_options options = {
		.nhosts = 2,
		.nswitches = 1,
		.link_mbits = 8000,
		.trunk_mbits = 8000,
		.queue_bytes = 1 << 20,
		.loss = (uint32_t)(loss * (double)MMC_GILBERT_ONE),
		.loss_period = period,
		.datagram_bytes_max = 2048,
		.head_bytes = MMC_HEADER_BYTES,
		.payload_scale = 1,
		.seed = seed,
	};
	struct counts counts = { 0, 0 };
	struct mmc_network network;
	bool before = false;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (unsigned i = 0; i < TRIALS; i++) {
		bool lost = loses_one(&network);

		counts.lost += lost;
		counts.periods += lost && !before;
		before = lost;
	}
	CHECK_EQ(mmc_network_downlink(&network, 1)->lost, counts.lost);
	CHECK_EQ(mmc_network_uplink(&network, 0)->lost, 0);
	mmc_network_free(&network);
	return counts;
}

/* Returns whether a count is within five deviations of its mean. */
static bool fits(double found, double mean, double variance)
{
	return (found - mean) * (found - mean) <= 25 * variance + 1;
}

static void periods_have_their_length(void)
{
	static const uint32_t periods[] = { 2, 8, 30 };

	for (unsigned i = 0; i < 3; i++) {
		double period = periods[i];
		struct counts counts = count(0.05, periods[i], check_seed());
		double mean = TRIALS * 0.05;

		CHECK(fits(counts.lost, mean, mean * 2 * period));
		CHECK(fits(counts.periods, counts.lost / period,
			   counts.lost / period));
	}
}

static void losses_are_independent_by_default(void)
{
	for (uint32_t period = 0; period < 2; period++) {
		struct counts counts = count(0.05, period, check_seed());

		CHECK(fits(counts.lost, TRIALS * 0.05, TRIALS * 0.05));
		CHECK(fits(counts.periods, counts.lost * 0.95,
			   counts.lost * 0.05));
	}
}

static void a_seed_replays_losses(void)
{
	struct counts first = count(0.1, 5, 11);
	struct counts again = count(0.1, 5, 11);
	struct counts other = count(0.1, 5, 12);

	CHECK_EQ(again.lost, first.lost);
	CHECK_EQ(again.periods, first.periods);
	CHECK(other.lost != first.lost || other.periods != first.periods);
}

CHECK_MAIN(CHECK_TEST(periods_have_their_length),
	   CHECK_TEST(losses_are_independent_by_default),
	   CHECK_TEST(a_seed_replays_losses))
